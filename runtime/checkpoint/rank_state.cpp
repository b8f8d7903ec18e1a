#include "runtime/checkpoint/rank_state.h"

#include <ATen/CPUGeneratorImpl.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "runtime/checkpoint/test_hold.h"
#include "runtime/model/safetensors.h"
#include "runtime/parallel/shard_layout.h"

namespace coxswain {
namespace fs = std::filesystem;
namespace {

constexpr char kParameter[] = "parameter/";
constexpr char kExpAvg[] = "exp_avg/";
constexpr char kExpAvgSq[] = "exp_avg_sq/";
constexpr char kRng[] = "rng";

std::string rank_file(const fs::path& folder, int rank) {
  return (folder / ("rank-" + std::to_string(rank) + ".safetensors")).string();
}

std::string optimizer_file(const fs::path& folder, int rank) {
  return (folder / ("optimizer-rank-" + std::to_string(rank) + ".safetensors")).string();
}

torch::Tensor rng_state() {
  auto generator = at::detail::getDefaultCPUGenerator();
  std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void set_rng_state(const torch::Tensor& state) {
  auto generator = at::detail::getDefaultCPUGenerator();
  std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

tl::unexpected<Failure> mismatch(const fs::path& checkpoint, const std::string& what) {
  return bad_input("The checkpoint " + checkpoint.string() + " does not fit this training: " + what +
                   ". Resume with the settings it was made with, or start fresh under another project_name.");
}

// Where the tensors of a checkpoint lie. Sharded: one reader for each rank that saved.
class SavedTensors {
 public:
  static Result<SavedTensors> open(const ResumePoint& point) {
    SavedTensors saved;
    saved.path_ = point.path;
    const int files = point.state.sharded ? point.state.world_size : 1;
    for (int rank = 0; rank < files; ++rank) {
      auto reader = SafetensorsReader::open({rank_file(point.path, rank), optimizer_file(point.path, rank)});
      if (!reader) return fail(contract::ExitCode::kStorage, reader.error().message);
      saved.ranks_.push_back(std::move(*reader));
    }
    if (point.kind == CheckpointKind::kUser && !point.state.sharded) {
      auto model = point.state.peft
                       ? SafetensorsReader::open({(point.path / "adapter_model.safetensors").string()})
                       : SafetensorsReader::open_folder(point.path.string());
      if (!model) return fail(contract::ExitCode::kStorage, model.error().message);
      saved.parameter_prefix_ = point.state.peft ? "base_model.model." : "";
      saved.model_.push_back(std::move(*model));
    }
    return saved;
  }

  Result<void> load_parameter(const std::string& name, torch::Tensor& into,
                              const ParallelStrategy& strategy) const {
    if (model_.empty()) return load(kParameter + name, into, strategy);
    return copy_whole(model_.front(), parameter_prefix_ + name, into);
  }

  Result<void> load(const std::string& key, torch::Tensor& into, const ParallelStrategy& strategy) const {
    if (!strategy.sharded()) return copy_whole(ranks_.front(), key, into);
    return copy_shards(key, into, strategy);
  }

 private:
  Result<void> copy_whole(const SafetensorsReader& reader, const std::string& key,
                          torch::Tensor& into) const {
    if (!reader.has(key)) return mismatch(path_, "it has no " + key);
    auto tensor = reader.tensor(key);
    if (!tensor) return tl::unexpected(tensor.error());
    if (tensor->sizes() != into.sizes()) return mismatch(path_, "the shape of " + key + " differs");
    into.copy_(*tensor);
    return {};
  }

  // Note "resharding": the flat array of a unit is the same for any number of ranks but for the padding at
  // its end, and rank r of n holds its r-th n-th part (shard_layout.h). So a shard is made of pieces of those
  // that were saved.
  Result<void> copy_shards(const std::string& key, torch::Tensor& into,
                           const ParallelStrategy& strategy) const {
    std::vector<torch::Tensor> shards;
    std::vector<ElementRange> saved;
    for (const SafetensorsReader& reader : ranks_) {
      if (!reader.has(key)) return mismatch(path_, "it has no " + key);
      auto tensor = reader.tensor(key);
      if (!tensor) return tl::unexpected(tensor.error());
      const int64_t begin = saved.empty() ? 0 : saved.back().end;
      saved.push_back({begin, begin + tensor->numel()});
      shards.push_back(*tensor);
    }
    const int64_t size = into.numel();
    const int64_t padding_at_most =
        (strategy.world_size() + static_cast<int64_t>(ranks_.size())) * kShardAlignment;
    if (std::abs(saved.back().end - size * strategy.world_size()) > padding_at_most) {
      return mismatch(path_, "the size of " + key + " differs");
    }
    into.zero_();
    const int64_t begin = strategy.rank() * size;
    for (const RangeCopy& copy : reshard({begin, begin + size}, saved)) {
      into.view(-1).narrow(0, copy.to, copy.size).copy_(shards[copy.source].narrow(0, copy.from, copy.size));
    }
    return {};
  }

  fs::path path_;
  std::vector<SafetensorsReader> ranks_;
  std::vector<SafetensorsReader> model_;  // none, or the one that holds the parameters
  std::string parameter_prefix_;
};

Result<void> check_same_training(const ResumePoint& point, const ParallelStrategy& strategy, bool peft) {
  if (point.state.peft != peft) {
    return mismatch(point.path, peft ? "it was made without peft" : "it was made with peft");
  }
  if (point.state.sharded != strategy.sharded()) {
    return mismatch(point.path, strategy.sharded()
                                    ? "it was made without sharding (one rank, or DDP)"
                                    : "it was made with ZeRO-3 by " + std::to_string(point.state.world_size) +
                                          " ranks, and this run does not shard");
  }
  return {};
}

Result<void> load_rng(const ResumePoint& point, int rank, uint64_t seed) {
  if (rank >= point.state.world_size) {
    seed_rank(seed, rank, point.state.step);
    return {};
  }
  auto reader = SafetensorsReader::open({rank_file(point.path, rank)});
  if (!reader) return fail(contract::ExitCode::kStorage, reader.error().message);
  auto state = reader->tensor(kRng);
  if (!state) return tl::unexpected(state.error());
  set_rng_state(state->clone());
  return {};
}

}  // namespace

void seed_rank(uint64_t seed, int rank, int64_t step) {
  // An odd multiplier for each part keeps the seeds of ranks, and of runs that go on, apart.
  const uint64_t mixed = seed + 0x9E3779B97F4A7C15ULL * static_cast<uint64_t>(rank) +
                         0xBF58476D1CE4E5B9ULL * static_cast<uint64_t>(step);
  torch::manual_seed(mixed);
}

Result<void> save_rank_state(const fs::path& folder, CheckpointKind kind, ParallelStrategy& strategy,
                             const AdamW& optimizer) {
  TensorMap tensors{{kRng, rng_state()}};
  TensorMap moments;
  if (strategy.sharded() || strategy.rank() == 0) {
    const bool with_parameters = strategy.sharded() || kind == CheckpointKind::kRecovery;
    for (const TrainableTensor& tensor : strategy.trainable()) {
      if (with_parameters) tensors.emplace(kParameter + tensor.name, tensor.parameter.detach());
    }
    for (const auto& [name, of_tensor] : optimizer.moments()) {
      moments.emplace(kExpAvg + name, of_tensor.exp_avg);
      moments.emplace(kExpAvgSq + name, of_tensor.exp_avg_sq);
    }
  }
  if (auto saved = write_safetensors(rank_file(folder, strategy.rank()), tensors); !saved) return saved;
  test_hold("half", strategy.rank(), optimizer.steps());
  if (moments.empty()) return {};
  return write_safetensors(optimizer_file(folder, strategy.rank()), moments);
}

Result<void> load_rank_state(const ResumePoint& point, ParallelStrategy& strategy, AdamW& optimizer,
                             bool peft, uint64_t seed) {
  if (auto same = check_same_training(point, strategy, peft); !same) return same;
  auto saved = SavedTensors::open(point);
  if (!saved) return tl::unexpected(saved.error());
  torch::NoGradGuard no_grad;
  for (TrainableTensor& tensor : strategy.trainable()) {
    if (auto done = saved->load_parameter(tensor.name, tensor.parameter, strategy); !done) return done;
  }
  for (auto& [name, moments] : optimizer.moments()) {
    if (auto done = saved->load(kExpAvg + name, moments.exp_avg, strategy); !done) return done;
    if (auto done = saved->load(kExpAvgSq + name, moments.exp_avg_sq, strategy); !done) return done;
  }
  optimizer.set_steps(point.state.step);
  return load_rng(point, strategy.rank(), seed);
}

}  // namespace coxswain
