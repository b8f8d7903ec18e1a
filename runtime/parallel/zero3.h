// Parameters, gradients and with them optimizer state sharded over the ranks, unit by unit.
//
// A unit's parameters are gathered before its forward and again before its backward, and released when
// another unit's are gathered; its gradients are reduce-scattered when its backward is done. So a rank holds
// 1/ranks of everything and the whole of the units that run together. Collectives don't overlap with
// computing yet.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/parallel/parallel_strategy.h"
#include "runtime/parallel/sharded_group.h"

namespace coxswain {

class Zero3 : public ParallelStrategy, private UnitRunner {
 public:
  Zero3(std::shared_ptr<ProcessGroup> group, const ModelParameters& model);

  int rank() const override { return group_->rank(); }
  int world_size() const override { return group_->world_size(); }
  UnitRunner& runner() override { return *this; }
  void begin_micro_batch(bool last) override { last_ = last; }
  void backward(const torch::Tensor& loss) override;
  std::vector<TrainableTensor> trainable() override;
  void zero_grad() override;
  bool sharded() const override { return true; }
  void all_reduce_sum(torch::Tensor& values) override { group_->all_reduce_sum(values); }
  void all_reduce_max(torch::Tensor& values) override { group_->all_reduce_max(values); }
  void barrier() override { group_->barrier(); }
  void visit_full_parameters(bool trainable_only, const ParameterVisitor& visit) override;
  std::map<std::string, torch::Tensor> full_parameters(bool trainable_only) override;
  ParameterMemory memory() const override { return memory_.now(); }
  void reset_peak_memory() override { memory_.reset_peak(); }

 private:
  using Groups = std::vector<ShardedGroup*>;

  torch::Tensor run(const std::vector<size_t>& units, const torch::Tensor& x, bool recompute,
                    const UnitForward& forward) override;
  Groups groups_of(const std::vector<size_t>& units) const;
  // Gathers these and releases all others.
  void gather(const Groups& wanted);
  void release_all();

  const std::shared_ptr<ProcessGroup> group_;
  MemoryCounter memory_;
  std::vector<std::vector<std::unique_ptr<ShardedGroup>>> units_;
  bool last_ = true;
};

}  // namespace coxswain
