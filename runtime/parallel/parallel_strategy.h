// How one model is trained by several ranks together. Implementations: Single, Ddp, Zero3.
//
// Life of one optimizer step, in this order, on every rank alike:
//   for each micro-batch i of n:  begin_micro_batch(i == n-1); loss = model.forward(…, runner()); backward(loss);
//   clip and step over trainable();  zero_grad();
// `loss` is this rank's sum of token losses divided by the *global* number of targets of the step; after the last
// backward the gradients are the sum over ranks, so that they don't depend on how a batch was split.
// Not thread-safe: one thread drives it. A peer that went away surfaces as PeerLost from any collective.
#pragma once

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "runtime/model/unit_runner.h"

namespace coxswain {

// A collective failed because another rank is gone or timed out: exit code 76.
struct PeerLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// One tensor that the optimizer updates. Under Zero3 a flat shard of a unit, elsewhere a whole parameter; `parameter` and
// `gradient` have the same shape and dtype. `gradient` is valid between the last backward and zero_grad().
struct TrainableTensor {
  std::string name;      // parameter name, or "<unit>.shard"
  torch::Tensor parameter;
  torch::Tensor gradient;
  bool decay = true;     // weight decay applies (transformers' rule: not for norms and biases)
};

// Bytes that this rank holds now for parameters and gradients; peak since construction.
struct ParameterMemory {
  int64_t parameter_bytes = 0;
  int64_t gradient_bytes = 0;
  int64_t peak_parameter_bytes = 0;
  int64_t peak_gradient_bytes = 0;
};

class ParallelStrategy {
 public:
  virtual ~ParallelStrategy() = default;

  virtual int rank() const = 0;
  virtual int world_size() const = 0;

  virtual UnitRunner& runner() = 0;
  virtual void begin_micro_batch(bool last) = 0;
  virtual void backward(const torch::Tensor& loss) = 0;
  virtual std::vector<TrainableTensor> trainable() = 0;
  virtual void zero_grad() = 0;

  // Whether trainable() holds a different part on each rank (norms and optimizer state are then per shard).
  virtual bool sharded() const = 0;

  // Element-wise sum over ranks, of a small CPU tensor, in place. Every rank calls it.
  virtual void all_reduce_sum(torch::Tensor& values) = 0;
  virtual void barrier() = 0;

  // Whole tensors by parameter name (HF or PEFT names), of the trainable parameters or of all. Every rank calls it and
  // takes part in the gather; only rank 0 gets tensors, the others an empty map. Gathered unit by unit.
  virtual std::map<std::string, torch::Tensor> full_parameters(bool trainable_only) = 0;

  // What this rank must keep to continue: for sharded strategies its own shards, else the trainable parameters (the same
  // on all ranks). Names are trainable()'s. Loading copies in place.
  virtual ParameterMemory memory() const = 0;
};

}  // namespace coxswain
