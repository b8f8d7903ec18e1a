// Learning rates, as transformers' get_scheduler has them. Torch-free. Counts optimizer steps, not steps ×
// ranks.
#pragma once

#include <cstdint>

#include "runtime/config/train_config.h"

namespace coxswain {

// ceil(ratio · total), as transformers' Trainer.
int64_t warmup_steps(double warmup_ratio, int64_t total_steps);

// What the base learning rate is multiplied by in optimizer step `step` (from 0: the first update uses step
// 0, which with warm-up is 0).
double learning_rate_factor(LrSchedule schedule, int64_t step, int64_t warmup_steps, int64_t total_steps);

// The learning rate of optimizer step `step`, from 0.
double learning_rate(const OptimizerConfig& config, int64_t step, int64_t total_steps);

}  // namespace coxswain
