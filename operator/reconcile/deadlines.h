// When a job, or the start of an attempt, has taken too long. Both follow from what is persisted, so that
// they hold over a restart of the operator.
#pragma once

#include "operator/reconcile/failure_cause.h"

namespace coxswain {

// status.startTime + runPolicy.activeDeadlineSeconds, where both are there.
std::optional<TimePoint> active_deadline(const TrainingJob& job, const TrainingJobStatus& status);

// status.startupTime + runPolicy.startupDeadlineSeconds. Nothing once all pods have started, and while
// earlier pods have to go first.
std::optional<TimePoint> startup_deadline(const TrainingJob& job, const TrainingJobStatus& status,
                                          const Gang& gang);

// The failure of a gang that did not start in time: says what was refused, or which pod waits for what. Final
// where the same would be refused again.
GangFailure startup_failure(const TrainingJob& job, const Gang& gang, const Observed& observed, TimePoint now,
                            const Settings& settings);

}  // namespace coxswain
