#include "operator/reconcile/clean_pods.h"

#include "operator/reconcile/node_loss.h"
#include "operator/reconcile/reasons.h"

namespace coxswain {
namespace {

bool has_ended(const ObservedPod& pod) {
  return pod.phase == PodPhase::kSucceeded || pod.phase == PodPhase::kFailed;
}

bool stopped_by_deadline(const TrainingJobStatus& status) {
  const Condition* failed = find_condition(status, kConditionFailed);
  return failed != nullptr && failed->reason == kReasonDeadlineExceeded;
}

TimePoint force_due(const RunPolicy& policy, const ObservedPod& pod, TimePoint now,
                    const Settings& settings) {
  TimePoint from = *pod.deletion_time;
  const auto lost = node_lost_at(pod, policy);
  if (lost && *lost <= now) from -= std::chrono::seconds(pod.deletion_grace_seconds.value_or(0));
  return from + settings.force_delete_after;
}

}  // namespace

Deletions delete_pods(const RunPolicy& policy, const std::vector<const ObservedPod*>& pods, TimePoint now,
                      const Settings& settings) {
  Deletions out;
  for (const ObservedPod* pod : pods) {
    if (!pod->terminating()) {
      out.pods.push_back({pod->name, pod->uid, std::nullopt});
      continue;
    }
    const TimePoint forced = force_due(policy, *pod, now, settings);
    if (now >= forced) {
      out.pods.push_back({pod->name, pod->uid, 0});
      if (pod->deletion_grace_seconds != 0) out.forced.push_back(pod);
    } else if (!out.look_again || forced < *out.look_again) {
      out.look_again = forced;
    }
  }
  return out;
}

std::vector<const ObservedPod*> pods_to_clean(const TrainingJob& job, const TrainingJobStatus& status,
                                              const Observed& observed) {
  const CleanPodPolicy policy = job.spec.run_policy.clean_pod_policy;
  const bool stops_running = policy != CleanPodPolicy::kNone || stopped_by_deadline(status);
  std::vector<const ObservedPod*> pods;
  for (const ObservedPod& pod : observed.pods) {
    const bool of_earlier_attempt = pod.attempt != status.attempt;
    const bool cleaned = policy == CleanPodPolicy::kAll || (stops_running && !has_ended(pod));
    if (of_earlier_attempt || cleaned || pod.terminating()) pods.push_back(&pod);
  }
  return pods;
}

}  // namespace coxswain
