#include "operator/reconcile/deadlines.h"

#include <algorithm>

#include "operator/reconcile/refusal.h"
#include "operator/reconcile/render.h"
#include "operator/reconcile/startup_trouble.h"

namespace coxswain {

std::optional<TimePoint> active_deadline(const TrainingJob& job, const TrainingJobStatus& status) {
  const auto& seconds = job.spec.run_policy.active_deadline_seconds;
  if (!seconds || !status.start_time) return std::nullopt;
  return *status.start_time + std::chrono::seconds(*seconds);
}

std::optional<TimePoint> startup_deadline(const TrainingJob& job, const TrainingJobStatus& status,
                                          const Gang& gang) {
  if (!status.startup_time || !gang.old.empty() || all_started(gang)) return std::nullopt;
  return *status.startup_time + std::chrono::seconds(job.spec.run_policy.startup_deadline_seconds);
}

GangFailure startup_failure(const TrainingJob& job, const Gang& gang, const Observed& observed, TimePoint now,
                            const Settings& settings) {
  GangFailure failure;
  failure.cause = kCauseStartupDeadline;
  failure.message = "Not all pods ran within startupDeadlineSeconds (" +
                    std::to_string(job.spec.run_policy.startup_deadline_seconds) + " s). ";
  const auto late = std::find_if(gang.by_rank.begin(), gang.by_rank.end(),
                                 [](const ObservedPod* pod) { return pod == nullptr || !has_started(*pod); });
  if (late != gang.by_rank.end()) {
    failure.node_rank = late - gang.by_rank.begin();
    failure.pod = pod_name(job, *failure.node_rank);
  }
  if (!observed.conflicts.empty()) {
    if (!observed.conflicts.front().of_predecessor) failure.charge = Charge::kFinal;
    failure.message += name_conflict_words(observed.conflicts.front()).message;
  } else if (!observed.rejections.empty()) {
    const Refusal refusal = understand(observed.rejections.front());
    if (refusal.outlook != Outlook::kPasses) failure.charge = Charge::kFinal;
    failure.message += refusal.sentence;
  } else if (const auto trouble = gang_trouble(gang, now, settings)) {
    failure.pod = trouble->pod->name;
    failure.node_rank = trouble->pod->node_rank;
    failure.message += trouble->sentence;
  } else if (late != gang.by_rank.end()) {
    failure.message +=
        "Pod " + failure.pod + (*late == nullptr ? " was never created." : " is still pending.");
  }
  return failure;
}

}  // namespace coxswain
