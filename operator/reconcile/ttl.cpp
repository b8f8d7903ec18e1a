#include "operator/reconcile/ttl.h"

namespace coxswain {

std::optional<TimePoint> deletion_due(const TrainingJob& job, const TrainingJobStatus& status) {
  const auto& seconds = job.spec.run_policy.ttl_seconds_after_finished;
  if (!seconds || !is_finished(status)) return std::nullopt;
  const char* type = has_condition(status, kConditionComplete) ? kConditionComplete : kConditionFailed;
  return find_condition(status, type)->last_transition_time + std::chrono::seconds(*seconds);
}

}  // namespace coxswain
