// runPolicy.ttlSecondsAfterFinished.
#pragma once

#include "operator/api/training_job.h"

namespace coxswain {

// When a finished job is to be deleted; nothing where it is not finished or has no time to live.
std::optional<TimePoint> deletion_due(const TrainingJob& job, const TrainingJobStatus& status);

}  // namespace coxswain
