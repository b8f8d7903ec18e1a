#include "tests/parallel/tiny_model.h"

#include <mutex>

#include "runtime/optim/adamw.h"
#include "runtime/optim/clip.h"
#include "tests/parallel/ranks.h"

namespace coxswain::testing {
namespace {

constexpr int64_t kRows = 12;
constexpr int64_t kRowLength = 8;

// Row r has r·2 % 7 targets, so that rows 0 and 7 have none.
std::pair<torch::Tensor, torch::Tensor> rows(int64_t vocab) {
  torch::Tensor ids = (torch::arange(kRows * kRowLength, torch::kInt64) * 31 + 5).remainder(vocab);
  ids = ids.view({kRows, kRowLength});
  torch::Tensor labels = ids.roll(-1, 1).clone();
  for (int64_t row = 0; row < kRows; ++row) {
    labels[row].slice(0, row * 2 % 7) = -100;
  }
  return {ids, labels};
}

}  // namespace

TinyModel::TinyModel(const TinyOptions& options, int64_t seed) : options_(options) {
  auto generator = at::detail::createCPUGenerator(seed);
  const auto random = [&](std::vector<int64_t> shape) { return torch::randn(shape, generator) * 0.2; };
  const int64_t hidden = options.hidden;
  const bool base = !options.adapters;
  units_.resize(options.blocks + 2);
  units_.front().name = "embed";
  units_.back().name = "head";
  add(0, "embed.weight", random({options.vocab, hidden}), base);
  for (int64_t i = 0; i < options.blocks; ++i) {
    const std::string prefix = "layers." + std::to_string(i) + ".";
    units_[i + 1].name = "layers." + std::to_string(i);
    add(i + 1, prefix + "norm.weight", torch::ones({hidden}) + random({hidden}), base);
    add(i + 1, prefix + "linear.weight", random({hidden, hidden}), base);
    add(i + 1, prefix + "linear.bias", random({hidden}), base);
    if (options.adapters) {
      add(i + 1, prefix + "linear.lora_A.weight", random({2, hidden}));
      add(i + 1, prefix + "linear.lora_B.weight", random({hidden, 2}));
    }
  }
  add(options.blocks + 1, "norm.weight", torch::ones({hidden}), base);
  if (!options.tied) {
    add(options.blocks + 1, "head.weight", random({options.vocab, hidden}), base);
  }
}

torch::Tensor& TinyModel::add(size_t unit, const std::string& name, torch::Tensor values, bool trained) {
  units_[unit].parameter_names.push_back(name);
  return values_[name] = values.detach().requires_grad_(trained);
}

ModelParameters TinyModel::parts() const {
  return {units_, {values_.begin(), values_.end()}};
}

torch::Tensor TinyModel::block(int64_t index, const torch::Tensor& x) {
  const std::string prefix = "layers." + std::to_string(index) + ".";
  const torch::Tensor normed = torch::layer_norm(x, {options_.hidden}, values_[prefix + "norm.weight"]);
  torch::Tensor y = torch::linear(normed, values_[prefix + "linear.weight"], values_[prefix + "linear.bias"]);
  if (options_.adapters) {
    const torch::Tensor low = torch::linear(normed, values_[prefix + "linear.lora_A.weight"]);
    y = y + torch::linear(low, values_[prefix + "linear.lora_B.weight"]);
  }
  return x + torch::dropout(torch::gelu(y), options_.dropout, options_.dropout > 0);
}

torch::Tensor TinyModel::loss_sum(const torch::Tensor& ids, const torch::Tensor& labels, UnitRunner& runner,
                                  bool recompute) {
  torch::Tensor x = runner.run({0}, ids, false, [this](const torch::Tensor& places) {
    return torch::embedding(values_["embed.weight"], places);
  });
  for (int64_t i = 0; i < options_.blocks; ++i) {
    x = runner.run({static_cast<size_t>(i + 1)}, x, recompute,
                   [this, i](const torch::Tensor& input) { return block(i, input); });
  }
  const size_t head = options_.blocks + 1;
  const auto units = options_.tied ? std::vector<size_t>{head, 0} : std::vector<size_t>{head};
  return runner.run(units, x, false, [this, labels](const torch::Tensor& input) {
    const torch::Tensor normed = torch::layer_norm(input, {options_.hidden}, values_["norm.weight"]);
    const torch::Tensor logits =
        torch::linear(normed, values_[options_.tied ? "embed.weight" : "head.weight"]);
    return torch::cross_entropy_loss(logits, labels, {}, at::Reduction::Sum, -100);
  });
}

namespace {

// One rank's part of a run; `result` is shared by the ranks.
class Run {
 public:
  Run(const TinyOptions& model, const TrainOptions& options, std::shared_ptr<ProcessGroup> group,
      TrainResult& result, std::mutex& mutex)
      : options_(options),
        // Only rank 0 has the right start: the strategy has to spread it.
        model_(model, group->rank() == 0 ? 7 : 8),
        strategy_(make_strategy(options.backend, group, model_.parts())),
        result_(result),
        mutex_(mutex) {
    std::tie(ids_, labels_) = rows(model.vocab);
  }

  void train() {
    OptimizerConfig config;
    config.weight_decay = 0.1;
    AdamW optimizer(config, strategy_->trainable());
    for (int step = 0; step < options_.steps; ++step) {
      const double loss = accumulate();
      const auto tensors = strategy_->trainable();
      if (step == 0) {
        collect_gradients(tensors);
      }
      const double norm = clip_by_global_norm(*strategy_, tensors, options_.max_norm);
      optimizer.step(tensors, 1e-2);
      strategy_->zero_grad();
      if (strategy_->rank() == 0) {
        result_.losses.push_back(loss);
        result_.norms.push_back(norm);
      }
    }
    for (auto& [name, whole] : strategy_->full_parameters(true)) {
      result_.parameters[name] = whole.clone();
    }
  }

 private:
  double accumulate() {
    const int64_t targets = labels_.ne(-100).sum().item<int64_t>();
    const int64_t parts = options_.ranks * options_.accumulation;
    torch::Tensor total = torch::zeros({1}, torch::kDouble);
    for (int i = 0; i < options_.accumulation; ++i) {
      strategy_->begin_micro_batch(i + 1 == options_.accumulation);
      const int64_t part = i * options_.ranks + strategy_->rank();
      const int64_t begin = kRows * part / parts;
      const int64_t size = kRows * (part + 1) / parts - begin;
      const torch::Tensor loss =
          model_.loss_sum(ids_.narrow(0, begin, size).flatten(), labels_.narrow(0, begin, size).flatten(),
                          strategy_->runner(), options_.recompute) /
          static_cast<double>(targets);
      strategy_->backward(loss);
      total += loss.item<double>();
    }
    strategy_->all_reduce_sum(total);
    return total.item<double>();
  }

  void collect_gradients(const std::vector<TrainableTensor>& tensors) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const TrainableTensor& tensor : tensors) {
      torch::Tensor& whole = result_.first_gradients[tensor.name];
      if (!whole.defined()) {
        whole = torch::full(tensor.shape, NAN);
      }
      whole.flatten().narrow(0, tensor.offset, tensor.gradient.numel()).copy_(tensor.gradient.flatten());
    }
  }

  TrainOptions options_;
  TinyModel model_;
  std::unique_ptr<ParallelStrategy> strategy_;
  TrainResult& result_;
  std::mutex& mutex_;
  torch::Tensor ids_;
  torch::Tensor labels_;
};

}  // namespace

TrainResult train(const TinyOptions& model, const TrainOptions& options) {
  TrainResult result;
  std::mutex mutex;
  run_ranks(options.ranks, [&](const std::shared_ptr<ProcessGroup>& group) {
    Run(model, options, group, result, mutex).train();
  });
  return result;
}

}  // namespace coxswain::testing
