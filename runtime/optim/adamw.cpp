#include "runtime/optim/adamw.h"

#include <ATen/ops/_fused_adamw.h>

#include <stdexcept>

namespace coxswain {

AdamW::AdamW(const OptimizerConfig& config, const std::vector<TrainableTensor>& tensors) : config_(config) {
  for (const TrainableTensor& tensor : tensors) {
    moments_[tensor.name] = {torch::zeros_like(tensor.parameter), torch::zeros_like(tensor.parameter)};
  }
}

void AdamW::step(const std::vector<TrainableTensor>& tensors, double learning_rate) {
  const torch::NoGradGuard no_grad;
  step_group(tensors, true, learning_rate);
  step_group(tensors, false, learning_rate);
  ++steps_;
}

void AdamW::step_group(const std::vector<TrainableTensor>& tensors, bool decay, double learning_rate) {
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> gradients;
  std::vector<at::Tensor> averages;
  std::vector<at::Tensor> square_averages;
  for (const TrainableTensor& tensor : tensors) {
    if (tensor.decay != decay) {
      continue;
    }
    const auto moments = moments_.find(tensor.name);
    if (moments == moments_.end()) {
      throw std::invalid_argument("AdamW has no state for " + tensor.name);
    }
    parameters.push_back(tensor.parameter);
    gradients.push_back(tensor.gradient);
    averages.push_back(moments->second.exp_avg);
    square_averages.push_back(moments->second.exp_avg_sq);
  }
  if (parameters.empty()) {
    return;
  }
  const at::Tensor step = torch::full({}, static_cast<double>(steps_ + 1), torch::kFloat);
  const std::vector<at::Tensor> steps(parameters.size(), step);
  at::_fused_adamw_(parameters, gradients, averages, square_averages, {}, steps, learning_rate,
                    config_.adam_beta1, config_.adam_beta2, decay ? config_.weight_decay : 0.0,
                    config_.adam_epsilon, /*amsgrad=*/false, /*maximize=*/false);
}

void AdamW::set_steps(int64_t steps) {
  steps_ = steps;
}

int64_t AdamW::state_bytes() const {
  int64_t bytes = 0;
  for (const auto& [name, moments] : moments_) {
    bytes += static_cast<int64_t>(moments.exp_avg.nbytes() + moments.exp_avg_sq.nbytes());
  }
  return bytes;
}

}  // namespace coxswain
