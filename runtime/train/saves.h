// Checkpoints during training: which are due, and how all ranks write one together (checkpoint/commit.h).
#pragma once

#include <cstdint>

#include "contract/result.h"
#include "runtime/config/train_config.h"
#include "runtime/data/sampler.h"
#include "runtime/train/session.h"

namespace coxswain {

inline constexpr int kRecoveryCheckpointsKept = 2;

// Whether save_strategy asks for a save after the step that went from `before` to `after`.
bool user_save_due(const SaveConfig& save, const StepPlan& plan, const TrainPosition& before,
                   const TrainPosition& after);

// Every rank calls it at the same step. After it the checkpoint is complete and older ones are gone; a
// failure leaves the earlier ones as they were. A recovery checkpoint that this attempt has already made at
// this step is left as it is.
Result<void> save_checkpoint(TrainingSession& session, CheckpointKind kind);

}  // namespace coxswain
