// When a job, or the start of an attempt, has taken too long. Both follow from what is persisted, so that
// they hold over a restart of the operator.
#pragma once

#include "operator/reconcile/failure_cause.h"

namespace coxswain {

// status.startTime + runPolicy.activeDeadlineSeconds, where both are there.
std::optional<TimePoint> active_deadline(const TrainingJob& job, const TrainingJobStatus& status);

// runPolicy.startupDeadlineSeconds after the first pod of the attempt was created, or – where none could be –
// after the attempt was due. Nothing once all pods have started, and while earlier pods have to go first.
std::optional<TimePoint> startup_deadline(const TrainingJob& job, const TrainingJobStatus& status,
                                          const Gang& gang, const Settings& settings);

// The failure of an attempt that did not start in time: says which pod is waiting for what.
GangFailure startup_failure(const TrainingJob& job, const Gang& gang);

// The first pod that has not started and says why; nullptr where none does.
const ObservedPod* waiting_pod(const Gang& gang);
// "pod j-1: ImagePullBackOff: …".
std::string waiting_words(const ObservedPod& pod);

}  // namespace coxswain
