// spec.suspend: the pods go, the job stays. A suspension ends an attempt without counting it, so that its
// pods are told from those of a resume, whatever was changed in between.
#pragma once

#include "operator/reconcile/conditions.h"
#include "operator/reconcile/gang.h"

namespace coxswain {

// The status of a job that is to be suspended: startTime gone and the attempt over, if it was running.
TrainingJobStatus suspended_status(TrainingJobStatus status, bool has_pods, const Mark& mark);

// The status of a job that starts, or starts again after a suspension.
TrainingJobStatus started_status(const TrainingJob& job, const Settings& settings, const Mark& mark);

}  // namespace coxswain
