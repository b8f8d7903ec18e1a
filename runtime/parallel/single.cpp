#include "runtime/parallel/single.h"

#include "runtime/parallel/unit_function.h"

namespace coxswain {

Single::Single(std::shared_ptr<ProcessGroup> group, const ModelParameters& model)
    : group_(std::move(group)), parameters_(unit_parameters(model)), unit_trainable_(model.units.size()) {
  for (const UnitParameter& parameter : parameters_) {
    memory_.add_parameters(static_cast<int64_t>(parameter.tensor.nbytes()));
    if (parameter.trainable()) {
      unit_trainable_[parameter.unit] = true;
    }
  }
}

torch::Tensor Single::run(const std::vector<size_t>& units, const torch::Tensor& x, bool recompute,
                          const UnitForward& forward) {
  // A parameter of several runs would accumulate in each nested backward; c10d::Reducer takes it only once.
  if (!recompute || units.size() != 1 || !x.is_floating_point()) {
    return forward(x);
  }
  return run_unit(x, unit_trainable_.at(units[0]), true, forward, {});
}

void Single::backward(const torch::Tensor& loss) {
  loss.backward();
  int64_t bytes = 0;
  for (const UnitParameter& parameter : parameters_) {
    const torch::Tensor& gradient = parameter.tensor.grad();
    bytes += gradient.defined() ? static_cast<int64_t>(gradient.nbytes()) : 0;
  }
  memory_.add_gradients(bytes - memory_.now().gradient_bytes);
}

std::vector<TrainableTensor> Single::trainable() {
  std::vector<TrainableTensor> tensors;
  for (UnitParameter& parameter : parameters_) {
    if (!parameter.trainable()) {
      continue;
    }
    if (!parameter.tensor.grad().defined()) {
      parameter.tensor.mutable_grad() = torch::zeros_like(parameter.tensor.detach());
    }
    tensors.push_back({parameter.name, parameter.tensor.detach(), parameter.tensor.grad(), parameter.decay, 0,
                       parameter.tensor.sizes().vec()});
  }
  return tensors;
}

// Dropped rather than zeroed: the next backward then keeps the tensor that it computed, without adding it to
// zeros.
void Single::zero_grad() {
  for (UnitParameter& parameter : parameters_) {
    parameter.tensor.mutable_grad().reset();
  }
  memory_.add_gradients(-memory_.now().gradient_bytes);
}

void Single::visit_full_parameters(bool trainable_only, const ParameterVisitor& visit) {
  if (rank() != 0) {
    return;
  }
  for (const UnitParameter& parameter : parameters_) {
    if (parameter.trainable() || !trainable_only) {
      visit(parameter.name, parameter.tensor.detach());
    }
  }
}

std::map<std::string, torch::Tensor> Single::full_parameters(bool trainable_only) {
  std::map<std::string, torch::Tensor> whole;
  visit_full_parameters(trainable_only, [&](const std::string& name, const torch::Tensor& tensor) {
    whole.emplace(name, tensor);
  });
  return whole;
}

}  // namespace coxswain
