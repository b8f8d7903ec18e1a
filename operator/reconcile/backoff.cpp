#include "operator/reconcile/backoff.h"

#include <algorithm>

#include "operator/reconcile/jitter.h"

namespace coxswain {

Duration restart_delay(const std::string& job_uid, int64_t attempt, int64_t counted,
                       const Settings& settings) {
  const int64_t doublings = std::clamp<int64_t>(counted - 1, 0, 30);
  const Duration delay = std::min(settings.backoff_base * (int64_t{1} << doublings), settings.backoff_max);
  return delay + delay * jitter_thousandths(job_uid, attempt) / 4000;
}

TimePoint restart_due(const TrainingJob& job, const TrainingJobStatus& status, const Settings& settings) {
  const bool answers_failure = has_condition(status, kConditionRestarting) && status.last_failure;
  if (!answers_failure) return TimePoint();
  return status.last_failure->time +
         restart_delay(job.metadata.uid, status.attempt, status.restarts.counted, settings);
}

}  // namespace coxswain
