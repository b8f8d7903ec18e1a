#include "operator/reconcile/deadlines.h"

#include <algorithm>

#include "operator/reconcile/backoff.h"
#include "operator/reconcile/render.h"

namespace coxswain {

std::optional<TimePoint> active_deadline(const TrainingJob& job, const TrainingJobStatus& status) {
  const auto& seconds = job.spec.run_policy.active_deadline_seconds;
  if (!seconds || !status.start_time) return std::nullopt;
  return *status.start_time + std::chrono::seconds(*seconds);
}

std::optional<TimePoint> startup_deadline(const TrainingJob& job, const TrainingJobStatus& status,
                                          const Gang& gang, const Settings& settings) {
  if (!status.start_time || !gang.old.empty() || all_started(gang)) return std::nullopt;
  std::optional<TimePoint> begun;
  for (const ObservedPod* pod : gang.by_rank) {
    if (pod != nullptr && pod->created && (!begun || *pod->created < *begun)) begun = pod->created;
  }
  if (!begun) begun = std::max(*status.start_time, restart_due(job, status, settings));
  return *begun + std::chrono::seconds(job.spec.run_policy.startup_deadline_seconds);
}

const ObservedPod* waiting_pod(const Gang& gang) {
  for (const ObservedPod* pod : gang.by_rank) {
    if (pod != nullptr && !has_started(*pod) && !pod->waiting_reason.empty()) return pod;
  }
  return nullptr;
}

std::string waiting_words(const ObservedPod& pod) {
  return "pod " + pod.name + ": " + pod.waiting_reason +
         (pod.waiting_message.empty() ? "" : ": " + pod.waiting_message.substr(0, 800));
}

GangFailure startup_failure(const TrainingJob& job, const Gang& gang) {
  GangFailure failure;
  failure.cause = kCauseStartupDeadline;
  failure.message = "Not all pods ran within startupDeadlineSeconds (" +
                    std::to_string(job.spec.run_policy.startup_deadline_seconds) + " s)";
  const auto late = std::find_if(gang.by_rank.begin(), gang.by_rank.end(),
                                 [](const ObservedPod* pod) { return pod == nullptr || !has_started(*pod); });
  const ObservedPod* waiting = waiting_pod(gang);
  if (waiting != nullptr) {
    failure.pod = waiting->name;
    failure.node_rank = waiting->node_rank;
    failure.message += "; " + waiting_words(*waiting);
  } else if (late != gang.by_rank.end()) {
    failure.node_rank = late - gang.by_rank.begin();
    failure.pod = pod_name(job, *failure.node_rank);
    failure.message +=
        "; pod " + failure.pod + (*late == nullptr ? " was never created." : " is still pending.");
  }
  return failure;
}

}  // namespace coxswain
