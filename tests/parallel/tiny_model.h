// A small model of units for the strategies' tests, and a whole training run of it.
#pragma once

#include <torch/torch.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/parallel/make_strategy.h"

namespace coxswain::testing {

struct TinyOptions {
  bool tied = true;
  bool adapters = false;  // the base is frozen, each block has a trained low-rank pair
  int64_t hidden = 24;
  int64_t vocab = 37;
  int64_t blocks = 3;
  double dropout = 0;
};

// Embedding, residual blocks (norm, linear with bias, GELU), norm and head; summed cross-entropy.
class TinyModel : public torch::nn::Module {
 public:
  explicit TinyModel(const TinyOptions& options, int64_t seed = 7);

  ModelParameters parts() const;
  // ids and labels [N]; labels of -100 don't count.
  torch::Tensor loss_sum(const torch::Tensor& ids, const torch::Tensor& labels, UnitRunner& runner,
                         bool recompute);

 private:
  torch::Tensor& add(size_t unit, const std::string& name, torch::Tensor values, bool trained = true);
  torch::Tensor block(int64_t index, const torch::Tensor& x);

  TinyOptions options_;
  std::vector<ModelUnit> units_;
  std::map<std::string, torch::Tensor> values_;
};

struct TrainOptions {
  DistributedBackend backend = DistributedBackend::kDdp;
  int ranks = 1;
  int accumulation = 1;
  bool recompute = false;
  int steps = 10;
  double max_norm = 1.0;
};

struct TrainResult {
  std::map<std::string, torch::Tensor> first_gradients;  // of the first step, whole, before clipping
  std::map<std::string, torch::Tensor> parameters;       // after the last step
  std::vector<double> losses;                            // per target
  std::vector<double> norms;
};

// Trains on the same 12 rows each step, dealt to ranks and micro-batches; rows have unequal numbers of
// targets, some none.
TrainResult train(const TinyOptions& model, const TrainOptions& options);

}  // namespace coxswain::testing
