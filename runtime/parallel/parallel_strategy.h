// How one model is trained by several ranks together. Implementations: Single, Ddp, Zero3; see
// make_strategy.h.
//
// Life of one optimizer step, in this order, on every rank alike:
//   for each micro-batch i of n:  begin_micro_batch(i == n-1); loss = model.forward(…, runner());
//   backward(loss); tensors = trainable(); clip and step over them;  zero_grad();
// `loss` is this rank's sum of token losses divided by the *global* number of targets of the step; after the
// last backward the gradients are the sum over ranks, so that they don't depend on how a batch was split. It
// must hang on the model's graph also where it is zero (no targets): every rank's backward takes part in the
// same collectives. Not thread-safe: one thread drives it. A peer that went away surfaces as PeerLost from
// any collective.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/model/unit_runner.h"

namespace coxswain {

// A collective failed because another rank is gone or timed out: exit code 76. The group can't be used
// afterwards; end the process, so that the other ranks notice too.
struct PeerLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// One tensor that the optimizer updates: a whole parameter, or under Zero3 this rank's part of one – elements
// [offset, offset + parameter.numel()) of the flattened parameter, one-dimensional. A parameter of which this
// rank holds nothing isn't listed. `parameter` and `gradient` have the same shape and dtype.
struct TrainableTensor {
  std::string name;            // the whole parameter's name
  torch::Tensor parameter;     // detached; written in place by the optimizer or a checkpoint
  torch::Tensor gradient;      // zeros where nothing contributed
  bool decay = true;           // weight decay applies (transformers' rule: not for norms and biases)
  int64_t offset = 0;          // first element within the flattened whole parameter
  std::vector<int64_t> shape;  // of the whole parameter
};

// Bytes that this rank holds now for parameters and gradients; peak since construction or
// reset_peak_memory().
struct ParameterMemory {
  int64_t parameter_bytes = 0;
  int64_t gradient_bytes = 0;
  int64_t peak_parameter_bytes = 0;
  int64_t peak_gradient_bytes = 0;
};

// Takes one whole parameter; the tensor is only good during the call, unless cloned.
using ParameterVisitor = std::function<void(const std::string& name, const torch::Tensor& whole)>;

class ParallelStrategy {
 public:
  virtual ~ParallelStrategy() = default;

  virtual int rank() const = 0;
  virtual int world_size() const = 0;

  virtual UnitRunner& runner() = 0;
  virtual void begin_micro_batch(bool last) = 0;
  virtual void backward(const torch::Tensor& loss) = 0;

  // Always the same names in the same order. `parameter` handles stay the same for the strategy's life;
  // `gradient` is valid between the last backward and zero_grad(), so ask again each step.
  virtual std::vector<TrainableTensor> trainable() = 0;

  // Also to be called after anything else wrote to trainable() parameters (a loaded checkpoint): what was
  // gathered is stale then.
  virtual void zero_grad() = 0;

  // Whether trainable() holds a different part on each rank (norms and optimizer state are then per shard).
  virtual bool sharded() const = 0;

  // Element-wise sum (largest) over ranks, of a small CPU tensor, in place. Every rank calls it.
  virtual void all_reduce_sum(torch::Tensor& values) = 0;
  virtual void all_reduce_max(torch::Tensor& values) = 0;
  virtual void barrier() = 0;

  // Visits the whole tensors of the trainable parameters or of all, by parameter name (HF or PEFT names),
  // gathered unit by unit. Every rank calls it and takes part in the gather; `visit` is only called on rank
  // 0.
  virtual void visit_full_parameters(bool trainable_only, const ParameterVisitor& visit) = 0;

  // The same, collected: rank 0 gets tensors, the others an empty map. They may alias the live parameters
  // where those are whole.
  virtual std::map<std::string, torch::Tensor> full_parameters(bool trainable_only) = 0;

  virtual ParameterMemory memory() const = 0;
  virtual void reset_peak_memory() = 0;
};

}  // namespace coxswain
