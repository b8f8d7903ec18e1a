// AdamW, equal to torch.optim.AdamW, over whatever part of the parameters this rank holds.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/config/train_config.h"
#include "runtime/parallel/parallel_strategy.h"

namespace coxswain {

// Same shape, dtype and part as the TrainableTensor of that name.
struct AdamWMoments {
  torch::Tensor exp_avg;
  torch::Tensor exp_avg_sq;
};

class AdamW {
 public:
  // `tensors`: strategy.trainable(); only shapes are read.
  AdamW(const OptimizerConfig& config, const std::vector<TrainableTensor>& tensors);

  // One update with this learning rate. `tensors`: strategy.trainable() of this step, the same names.
  void step(const std::vector<TrainableTensor>& tensors, double learning_rate);

  // The state to save; a checkpoint is loaded by copying into these tensors and set_steps().
  std::map<std::string, AdamWMoments>& moments() { return moments_; }
  const std::map<std::string, AdamWMoments>& moments() const { return moments_; }
  int64_t steps() const { return steps_; }  // updates made
  void set_steps(int64_t steps);
  int64_t state_bytes() const;

 private:
  void step_group(const std::vector<TrainableTensor>& tensors, bool decay, double learning_rate);

  OptimizerConfig config_;
  std::map<std::string, AdamWMoments> moments_;
  int64_t steps_ = 0;
};

}  // namespace coxswain
