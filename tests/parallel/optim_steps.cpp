// Twelve optimizer steps on made-up gradients, as JSON for optim_peer_test.py: argument 1 is the schedule.
#include <torch/torch.h>

#include <cmath>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/optim/adamw.h"
#include "runtime/optim/clip.h"
#include "runtime/optim/schedule.h"
#include "runtime/parallel/make_strategy.h"

namespace {

using namespace coxswain;

constexpr int kSteps = 12;

torch::Tensor wave(int64_t size, double scale, double phase) {
  const torch::Tensor at = torch::arange(size, torch::kDouble);
  return (torch::sin(at * 0.7 + phase) * scale).to(torch::kFloat);
}

std::vector<double> values(const torch::Tensor& tensor) {
  const torch::Tensor whole = tensor.detach().flatten().to(torch::kDouble).contiguous();
  return {whole.const_data_ptr<double>(), whole.const_data_ptr<double>() + whole.numel()};
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, LrSchedule> schedules{
      {"linear", LrSchedule::kLinear},
      {"cosine", LrSchedule::kCosine},
      {"constant", LrSchedule::kConstant},
      {"constant_with_warmup", LrSchedule::kConstantWithWarmup}};
  OptimizerConfig config;
  config.learning_rate = 1e-2;
  config.weight_decay = 0.1;
  config.warmup_ratio = 0.21;
  config.schedule = schedules.at(argc > 1 ? argv[1] : "linear");
  torch::Tensor weight = wave(257 * 3, 0.5, 0).view({257, 3}).requires_grad_(true);
  torch::Tensor norm = wave(19, 0.5, 1).requires_grad_(true);
  const ModelParameters model{{{"all", {"weight", "norm.weight"}}},
                              {{"weight", weight}, {"norm.weight", norm}}};
  const auto strategy = make_strategy(DistributedBackend::kNone, *ProcessGroup::connect({}), model);
  AdamW optimizer(config, strategy->trainable());
  nlohmann::json result;
  for (int step = 0; step < kSteps; ++step) {
    weight.mutable_grad() = wave(257 * 3, 0.02 * (step + 1), step).view({257, 3});
    norm.mutable_grad() = wave(19, 0.1, step * 2);
    const auto tensors = strategy->trainable();
    const double rate = learning_rate(config, step, kSteps);
    result["norms"].push_back(clip_by_global_norm(*strategy, tensors, 1.0));
    result["rates"].push_back(rate);
    optimizer.step(tensors, rate);
    strategy->zero_grad();
  }
  result["weight"] = values(weight);
  result["norm"] = values(norm);
  std::cout << result << '\n';
}
