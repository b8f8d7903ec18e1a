#include "runtime/checkpoint/rank_state.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <system_error>
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
constexpr char kAdapterFile[] = "adapter_model.safetensors";
constexpr char kAdapterPrefix[] = "base_model.model.";  // PEFT's, before a parameter's own name

std::string rank_file(const fs::path& folder, int rank) {
  return (folder / rank_file_name(rank)).string();
}

std::string optimizer_file(const fs::path& folder, int rank) {
  return (folder / optimizer_file_name(rank)).string();
}

std::string piece_key(const char* what, const TrainableTensor& tensor) {
  return what + tensor.name + "@" + std::to_string(tensor.offset);
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

Failure damaged(const fs::path& checkpoint, const std::string& what) {
  return {contract::ExitCode::kStorage,
          "The checkpoint " + checkpoint.string() + " is damaged: " + what + "."};
}

// -1, which no piece can have, for what is no number.
int64_t parse_offset(const std::string& text) {
  int64_t offset = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), offset);
  return error == std::errc{} && end == text.data() + text.size() ? offset : -1;
}

// Elements [offset, offset + values.numel()) of a flattened tensor.
struct Piece {
  int64_t offset = 0;
  torch::Tensor values;
};

// The tensors of a checkpoint, each in the pieces that the ranks held which saved it. Note "resharding": the
// pieces know their place in the whole tensor, so that any ranks can go on from those of any others, sharded
// or not.
class SavedTensors {
 public:
  static Result<SavedTensors> open(const ResumePoint& point) {
    SavedTensors saved(point.path);
    const int ranks = point.state.sharded ? point.state.world_size : 1;
    for (int rank = 0; rank < ranks; ++rank) {
      if (auto added = saved.add_rank(rank); !added) return tl::unexpected(added.error());
    }
    if (point.kind == CheckpointKind::kUser) {
      auto added = point.state.peft
                       ? saved.add_model(SafetensorsReader::open({(point.path / kAdapterFile).string()}),
                                         kAdapterPrefix)
                       : saved.add_model(SafetensorsReader::open_folder(point.path.string()), "");
      if (!added) return tl::unexpected(added.error());
    }
    if (auto whole = saved.check_pieces(); !whole) return tl::unexpected(whole.error());
    return saved;
  }

  // `into`: the part of tensor `key` from `offset` on; `size`: elements of the whole tensor.
  Result<void> load(const std::string& key, torch::Tensor into, int64_t offset, int64_t size) const {
    const auto found = pieces_.find(key);
    if (found == pieces_.end()) return mismatch(path_, "it has no " + key);
    std::vector<ElementRange> saved;
    int64_t saved_size = 0;
    for (const Piece& piece : found->second) {
      saved.push_back({piece.offset, piece.offset + piece.values.numel()});
      saved_size += piece.values.numel();
    }
    if (saved_size != size) return mismatch(path_, "the size of " + key + " differs");
    for (const RangeCopy& copy : reshard({offset, offset + into.numel()}, saved)) {
      const auto from = found->second[copy.source].values.narrow(0, copy.from, copy.size);
      into.view(-1).narrow(0, copy.to, copy.size).copy_(from);
    }
    return {};
  }

 private:
  explicit SavedTensors(fs::path path) : path_(std::move(path)) {}

  // The pieces of a tensor lie end to end.
  Result<void> check_pieces() {
    for (auto& [key, pieces] : pieces_) {
      std::sort(pieces.begin(), pieces.end(),
                [](const Piece& a, const Piece& b) { return a.offset < b.offset; });
      int64_t end = 0;
      for (const Piece& piece : pieces) {
        // Each rank has an "rng" of its own.
        if (key != kRng && piece.offset != end)
          return tl::unexpected(damaged(path_, "the pieces of " + key + " do not fit"));
        end += piece.values.numel();
      }
    }
    return {};
  }

  // Keys are "<what>/<name>@<offset>" (piece_key()).
  Result<void> add_rank(int rank) {
    std::vector<std::string> files{rank_file(path_, rank)};
    if (fs::exists(optimizer_file(path_, rank))) files.push_back(optimizer_file(path_, rank));
    return add(SafetensorsReader::open(files), [](const std::string& key) {
      const size_t at = key.rfind('@');
      return at == std::string::npos ? std::pair(key, int64_t{0})
                                     : std::pair(key.substr(0, at), parse_offset(key.substr(at + 1)));
    });
  }

  Result<void> add_model(Result<SafetensorsReader> reader, const std::string& prefix) {
    return add(std::move(reader), [&](const std::string& key) {
      return std::pair(kParameter + (key.starts_with(prefix) ? key.substr(prefix.size()) : key), int64_t{0});
    });
  }

  template <typename Place>
  Result<void> add(const Result<SafetensorsReader>& reader, const Place& place_of) {
    if (!reader) return fail(contract::ExitCode::kStorage, reader.error().message);
    for (const auto& [key, entry] : reader->entries()) {
      auto tensor = reader->tensor(key);
      if (!tensor) return fail(contract::ExitCode::kStorage, tensor.error().message);
      const auto [name, offset] = place_of(key);
      pieces_[name].push_back({offset, tensor->view(-1)});
    }
    return {};
  }

  fs::path path_;
  std::map<std::string, std::vector<Piece>> pieces_;
};

Result<void> load_rng(const ResumePoint& point, int rank, uint64_t seed) {
  if (rank >= point.state.world_size) {
    seed_rank(seed, rank, point.state.step);
    return {};
  }
  auto reader = SafetensorsReader::open({rank_file(point.path, rank)});
  if (!reader) return fail(contract::ExitCode::kStorage, reader.error().message);
  auto state = reader->tensor(kRng);
  if (!state)
    return tl::unexpected(damaged(point.path, "it has no random state of rank " + std::to_string(rank)));
  try {
    set_rng_state(state->clone());
  } catch (const c10::Error&) {
    return tl::unexpected(
        damaged(point.path, "the random state of rank " + std::to_string(rank) + " is none"));
  }
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
    for (const TrainableTensor& tensor : strategy.trainable()) {
      if (kind == CheckpointKind::kRecovery) tensors.emplace(piece_key(kParameter, tensor), tensor.parameter);
      const AdamWMoments& of_tensor = optimizer.moments().at(tensor.name);
      moments.emplace(piece_key(kExpAvg, tensor), of_tensor.exp_avg);
      moments.emplace(piece_key(kExpAvgSq, tensor), of_tensor.exp_avg_sq);
    }
  }
  if (auto saved = write_safetensors(rank_file(folder, strategy.rank()), tensors); !saved) return saved;
  test_hold("half", strategy.rank(), optimizer.steps());
  if (moments.empty()) return {};
  return write_safetensors(optimizer_file(folder, strategy.rank()), moments);
}

Result<void> load_rank_state(const ResumePoint& point, ParallelStrategy& strategy, AdamW& optimizer,
                             bool peft, uint64_t seed) {
  if (point.state.peft != peft) {
    return mismatch(point.path, peft ? "it was made without peft" : "it was made with peft");
  }
  auto saved = SavedTensors::open(point);
  if (!saved) return tl::unexpected(saved.error());
  torch::NoGradGuard no_grad;
  for (const TrainableTensor& tensor : strategy.trainable()) {
    AdamWMoments& moments = optimizer.moments().at(tensor.name);
    const int64_t size = c10::multiply_integers(tensor.shape);
    for (const auto& [what, into] :
         {std::pair(kParameter, tensor.parameter), std::pair(kExpAvg, moments.exp_avg),
          std::pair(kExpAvgSq, moments.exp_avg_sq)}) {
      if (auto done = saved->load(what + tensor.name, into, tensor.offset, size); !done) return done;
    }
  }
  strategy.zero_grad();
  optimizer.set_steps(point.state.step);
  return load_rng(point, strategy.rank(), seed);
}

}  // namespace coxswain
