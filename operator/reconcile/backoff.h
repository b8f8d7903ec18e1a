// How long a gang waits before it starts again.
#pragma once

#include <string>

#include "operator/reconcile/reconcile.h"

namespace coxswain {

// backoff_base doubled for each counted failure but the first, at most backoff_max, and up to a quarter more
// by (uid, attempt). `counted` 0 (only disruptions so far) waits like a first failure.
Duration restart_delay(const std::string& job_uid, int64_t attempt, int64_t counted,
                       const Settings& settings);

// When the attempt of `status` may create its pods: a delay after the failure that it answers; the far past
// for one that answers none.
TimePoint restart_due(const TrainingJob& job, const TrainingJobStatus& status, const Settings& settings);

}  // namespace coxswain
