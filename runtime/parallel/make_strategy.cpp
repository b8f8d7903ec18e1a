#include "runtime/parallel/make_strategy.h"

#include "runtime/parallel/ddp.h"
#include "runtime/parallel/single.h"
#include "runtime/parallel/zero3.h"

namespace coxswain {

ModelParameters model_parameters(std::vector<ModelUnit> units, const torch::nn::Module& module) {
  ModelParameters model;
  model.units = std::move(units);
  for (const auto& named : module.named_parameters()) {
    model.parameters.emplace_back(named.key(), named.value());
  }
  return model;
}

std::unique_ptr<ParallelStrategy> make_strategy(DistributedBackend backend,
                                                std::shared_ptr<ProcessGroup> group,
                                                const ModelParameters& model) {
  if (group->world_size() == 1) {
    return std::make_unique<Single>(std::move(group), model);
  }
  if (backend == DistributedBackend::kZero3) {
    return std::make_unique<Zero3>(std::move(group), model);
  }
  return std::make_unique<Ddp>(std::move(group), model);
}

}  // namespace coxswain
