// A model's parameters, checked and put in the order of its units: what every strategy starts from.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/parallel/make_strategy.h"
#include "runtime/parallel/parallel_strategy.h"
#include "runtime/parallel/process_group.h"

namespace coxswain {

struct UnitParameter {
  std::string name;
  torch::Tensor tensor;  // the model's own handle
  bool decay = true;
  size_t unit = 0;  // index into the model's units

  bool trainable() const { return tensor.requires_grad(); }
};

// In the order of the units. Throws std::invalid_argument as make_strategy says.
std::vector<UnitParameter> unit_parameters(const ModelParameters& model);

// Gives every rank rank 0's values, sending only the parameters whose checksums differ.
void equalise(ProcessGroup& group, std::vector<UnitParameter>& parameters);

// Keeps count of bytes held.
class MemoryCounter {
 public:
  void add_parameters(int64_t bytes);
  void add_gradients(int64_t bytes);
  void reset_peak();
  const ParameterMemory& now() const { return memory_; }

 private:
  ParameterMemory memory_;
};

}  // namespace coxswain
