// status.training, from what rank 0's agent says.
#pragma once

#include "operator/reconcile/reconcile.h"

namespace coxswain {

// The next status.training after `before`. Estimates the end from the pace between the two.
TrainingStatus training_from(const Progress& progress, const std::optional<TrainingStatus>& before,
                             TimePoint now);

// Whether it is worth a write of its own.
bool is_progress_due(const TrainingStatus& next, const std::optional<TrainingStatus>& before,
                     const Settings& settings);

}  // namespace coxswain
