// What one rank keeps to go on: its trainable tensors, the optimizer's moments and the state of its random
// numbers.
//
// rank-R.safetensors holds "parameter/<name>" (names: TrainableTensor) and "rng",
// optimizer-rank-R.safetensors holds "exp_avg/<name>" and "exp_avg_sq/<name>". Where ranks hold the same (not
// sharded), only rank 0 writes these, and the others their random state.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <filesystem>

#include "contract/result.h"
#include "runtime/checkpoint/run_state.h"
#include "runtime/optim/adamw.h"
#include "runtime/parallel/parallel_strategy.h"

namespace coxswain {

// Starts this rank's random numbers (dropout) for a run, or for a rank that a checkpoint knows nothing of.
void seed_rank(uint64_t seed, int rank, int64_t step);

// Writes this rank's files into `folder`, durably. A user save of ranks that hold the same leaves parameters
// out: they are in the model or adapter beside it. kStorage.
Result<void> save_rank_state(const std::filesystem::path& folder, CheckpointKind kind,
                             ParallelStrategy& strategy, const AdamW& optimizer);

// Loads into the strategy's tensors and the optimizer, in place. The number of ranks may differ from the one
// that saved; then a sharded state is cut anew, and ranks that are new get random numbers of their own.
// kBadInput where the checkpoint is of another kind of training (sharded or not, LoRA or not, other shapes).
Result<void> load_rank_state(const ResumePoint& point, ParallelStrategy& strategy, AdamW& optimizer,
                             bool peft, uint64_t seed);

}  // namespace coxswain
