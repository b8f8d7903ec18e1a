// What one rank keeps to go on: its trainable tensors, the optimizer's moments and the state of its random
// numbers.
//
// rank-R.safetensors holds "parameter/<name>@<offset>" (of TrainableTensor) and "rng",
// optimizer-rank-R.safetensors holds "exp_avg/<name>@<offset>" and "exp_avg_sq/<name>@<offset>". Where ranks
// hold the same (not sharded), only rank 0 writes these, and the others their random state. User saves have
// the parameters in the model or adapter beside these files.
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

// Writes this rank's files into `folder`, durably. kStorage.
Result<void> save_rank_state(const std::filesystem::path& folder, CheckpointKind kind,
                             ParallelStrategy& strategy, const AdamW& optimizer);

// Loads into the strategy's tensors and the optimizer, in place. The number of ranks and whether they shard
// may differ from those that saved; ranks that are new get random numbers of their own. kBadInput where the
// checkpoint is of another training (LoRA or not, other names or sizes).
Result<void> load_rank_state(const ResumePoint& point, ParallelStrategy& strategy, AdamW& optimizer,
                             bool peft, uint64_t seed);

}  // namespace coxswain
