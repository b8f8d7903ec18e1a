#include "runtime/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace coxswain {
namespace {

double ratio(int64_t part, int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(std::max<int64_t>(1, whole));
}

}  // namespace

int64_t warmup_steps(double warmup_ratio, int64_t total_steps) {
  return static_cast<int64_t>(std::ceil(static_cast<double>(total_steps) * warmup_ratio));
}

double learning_rate_factor(LrSchedule schedule, int64_t step, int64_t warmup_steps, int64_t total_steps) {
  if (schedule == LrSchedule::kConstant) {
    return 1.0;
  }
  if (step < warmup_steps) {
    return ratio(step, warmup_steps);
  }
  switch (schedule) {
    case LrSchedule::kLinear:
      return std::max(0.0, ratio(total_steps - step, total_steps - warmup_steps));
    case LrSchedule::kCosine:
      return std::max(0.0, 0.5 * (1.0 + std::cos(std::numbers::pi *
                                                 ratio(step - warmup_steps, total_steps - warmup_steps))));
    case LrSchedule::kConstant:
    case LrSchedule::kConstantWithWarmup:
      break;
  }
  return 1.0;
}

double learning_rate(const OptimizerConfig& config, int64_t step, int64_t total_steps) {
  const int64_t warmup = warmup_steps(config.warmup_ratio, total_steps);
  return config.learning_rate * learning_rate_factor(config.schedule, step, warmup, total_steps);
}

}  // namespace coxswain
