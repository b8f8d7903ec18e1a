// Parameters of one unit that are sharded together: of one dtype, and all trainable or all frozen.
//
// Note [Storage, not handles]: autograd keeps references to the parameters that it saved, and views of them.
// So the whole parameters are views of one flat tensor that lives as long as the group, and "releasing" them
// gives back the memory of its storage while every handle stays. Gathering gives the same storage memory
// again; what autograd saved is good again then. Nothing of that touches version counters: a parameter's own
// counter is never bumped, as its values, as autograd sees it, haven't changed between forward and backward.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/parallel/parallel_strategy.h"
#include "runtime/parallel/parameters.h"
#include "runtime/parallel/process_group.h"
#include "runtime/parallel/shard_layout.h"

namespace coxswain {

class ShardedGroup {
 public:
  // Copies this rank's shard out of the parameters and takes over their storage: they have none until
  // gather(). `group` and `memory` outlive it.
  ShardedGroup(std::vector<UnitParameter> parameters, ProcessGroup& group, MemoryCounter& memory);
  ~ShardedGroup();
  ShardedGroup(const ShardedGroup&) = delete;
  ShardedGroup& operator=(const ShardedGroup&) = delete;

  bool trainable() const { return parameters_.front().trainable(); }
  bool gathered() const { return gathered_; }
  // Collective.
  void gather();
  void release();
  // Collective: sums over ranks what has accumulated since the last call and adds this rank's part to its
  // gradient shard.
  void reduce_gradients();
  void zero_grad() { has_gradient_ = false; }

  void append_trainable(std::vector<TrainableTensor>& tensors);
  // While gathered.
  void visit(const ParameterVisitor& visit) const;

 private:
  class GradientHook;
  void take_over_parameters();
  void take_gradient(size_t index);
  torch::Tensor part(const torch::Tensor& flat, size_t index) const;

  std::vector<UnitParameter> parameters_;
  ProcessGroup& group_;
  MemoryCounter& memory_;
  ShardLayout layout_;
  torch::Tensor shard_;           // [shard_size]
  torch::Tensor whole_;           // [padded_size], without memory while released
  torch::Tensor gradient_shard_;  // [shard_size], once there was a gradient
  torch::Tensor whole_gradient_;  // [padded_size], while a unit's backward runs
  std::vector<bool> received_;    // which parameters' parts of whole_gradient_ are filled
  bool gathered_ = false;
  bool has_gradient_ = false;
};

}  // namespace coxswain
