// The parts of one optimizer step. All are collective: every rank calls them, in this order.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "runtime/data/batch.h"
#include "runtime/train/session.h"

namespace coxswain {

// This rank's micro-batches of one optimizer step.
struct StepBatches {
  std::vector<Batch> micro_batches;
  int64_t targets = 0;  // of this rank
  int64_t tokens = 0;   // of this rank, padding left out
};

StepBatches fetch_step(TrainingSession& session);

// What all ranks agree on before a step, by one small all-reduce.
struct StepAgreement {
  int64_t targets = 0;         // of all ranks: what the loss is divided by
  int64_t tokens = 0;          // of all ranks
  bool stop = false;           // some rank was asked to stop
  bool save_recovery = false;  // rank 0's clock says that a recovery checkpoint is due
};

StepAgreement agree_on_step(ParallelStrategy& strategy, const StepBatches& batches, bool stop,
                            bool save_recovery);

// Forward and backward of every micro-batch; after it the gradients are those of the global batch. Returns
// the loss of the global batch, the same on all ranks.
double forward_backward(TrainingSession& session, const StepBatches& batches, int64_t global_targets);

}  // namespace coxswain
