// Chooses how a model is trained in parallel.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/config/train_config.h"
#include "runtime/parallel/parallel_strategy.h"
#include "runtime/parallel/process_group.h"

namespace coxswain {

// What a strategy must know of a model. `parameters` holds the model's own handles (a tensor copy shares its
// handle; never detached or cloned), by the names that `units` use; requires_grad tells the trainable ones. A
// parameter registered under two names (tied) is listed once.
struct ModelParameters {
  std::vector<ModelUnit> units;
  std::vector<std::pair<std::string, torch::Tensor>> parameters;
};

// Of a module whose parameters are registered by those names.
ModelParameters model_parameters(std::vector<ModelUnit> units, const torch::nn::Module& module);

// One rank trains alone whatever the backend says; several by DDP, or with kZero3 fully sharded. Every rank
// calls it with the same model: ranks whose values differ (a random start from another seed) take rank 0's.
// After it, under Zero3, the parameters have no storage outside runner().run(); their first values are in the
// shards. Throws std::invalid_argument where a unit names a parameter that isn't there, or a parameter is in
// no unit or in two.
std::unique_ptr<ParallelStrategy> make_strategy(DistributedBackend backend,
                                                std::shared_ptr<ProcessGroup> group,
                                                const ModelParameters& model);

}  // namespace coxswain
