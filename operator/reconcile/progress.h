// status.training, from what rank 0's agent says.
#pragma once

#include "operator/reconcile/reconcile.h"

namespace coxswain {

// The next status.training after `before`. lastProgressTime is now where the step or the checkpoint is
// another one, else it stays, but for `moved` (Observed::moved). Estimates the end from the pace between the
// two.
TrainingStatus training_from(const Progress& progress, const std::optional<TrainingStatus>& before,
                             const std::optional<TimePoint>& moved, TimePoint now);

// Whether it is worth a write of its own.
bool is_progress_due(const TrainingStatus& next, const std::optional<TrainingStatus>& before,
                     const Settings& settings);

}  // namespace coxswain
