// Every parameter whole on this rank: one rank alone, and what Ddp builds on.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/parallel/parallel_strategy.h"
#include "runtime/parallel/parameters.h"
#include "runtime/parallel/process_group.h"

namespace coxswain {

class Single : public ParallelStrategy, private UnitRunner {
 public:
  Single(std::shared_ptr<ProcessGroup> group, const ModelParameters& model);

  int rank() const override { return group_->rank(); }
  int world_size() const override { return group_->world_size(); }
  UnitRunner& runner() override { return *this; }
  void begin_micro_batch(bool) override {}
  void backward(const torch::Tensor& loss) override;
  std::vector<TrainableTensor> trainable() override;
  void zero_grad() override;
  bool sharded() const override { return false; }
  void all_reduce_sum(torch::Tensor& values) override { group_->all_reduce_sum(values); }
  void all_reduce_max(torch::Tensor& values) override { group_->all_reduce_max(values); }
  void barrier() override { group_->barrier(); }
  void visit_full_parameters(bool trainable_only, const ParameterVisitor& visit) override;
  std::map<std::string, torch::Tensor> full_parameters(bool trainable_only) override;
  ParameterMemory memory() const override { return memory_.now(); }
  void reset_peak_memory() override { memory_.reset_peak(); }

 protected:
  const std::shared_ptr<ProcessGroup> group_;
  std::vector<UnitParameter> parameters_;
  MemoryCounter memory_;

 private:
  torch::Tensor run(const std::vector<size_t>& units, const torch::Tensor& x, bool recompute,
                    const UnitForward& forward) override;

  std::vector<bool> unit_trainable_;
};

}  // namespace coxswain
