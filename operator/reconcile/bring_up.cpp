#include "operator/reconcile/bring_up.h"

#include <algorithm>

#include "operator/reconcile/backoff.h"
#include "operator/reconcile/progress.h"
#include "operator/reconcile/reasons.h"
#include "operator/reconcile/refusal.h"
#include "operator/reconcile/render.h"
#include "operator/reconcile/startup_trouble.h"
#include "operator/reconcile/suspend.h"

namespace coxswain {
namespace {

void warn_of_overrides(const View& view, Draft& draft) {
  for (const std::string& sentence : overridden_by_operator(view.job)) {
    draft.emit(EventType::kWarning, kEventOverridden, sentence + " The manifest's is not used.");
  }
  if (!view.job.spec.output.claim_name) {
    draft.emit(
        EventType::kWarning, kEventOutputNotKept,
        "spec.output is not set: what the job writes to /output, checkpoints too, is lost with its pods.");
  }
}

Draft waiting(const View& view, Draft draft, const Words& words) {
  draft.status = as_starting(std::move(draft.status), words, view.mark());
  return draft;
}

bool says(const TrainingJobStatus& status, const char* type, const char* reason) {
  const Condition* condition = find_condition(status, type);
  return condition != nullptr && condition->status && condition->reason == reason;
}

bool is_stalled_by_name(const TrainingJobStatus& status) {
  return says(status, kConditionStalled, kReasonNameConflict);
}

// Whether the last status gave another reason for waiting: an event is for what is new.
bool is_news(const View& view, const char* condition, const std::string& reason) {
  const Condition* before = find_condition(view.job.status, condition);
  return before == nullptr || !before->status || before->reason != reason;
}

void drop_old_config_maps(const View& view, Draft& draft) {
  for (const int64_t attempt : view.observed.config_map_attempts) {
    if (attempt < draft.status.attempt) {
      draft.actions.push_back(DeleteChild{"ConfigMap", config_map_name(view.job, attempt)});
    }
  }
}

// --- Refused by the API server
// -------------------------------------------------------------------------------

int64_t pods_in(const Gang& gang) {
  return std::count_if(gang.by_rank.begin(), gang.by_rank.end(),
                       [](const ObservedPod* pod) { return pod != nullptr; });
}

// When a part of the gang was there first.
std::optional<TimePoint> first_created(const Gang& gang) {
  std::optional<TimePoint> first;
  for (const ObservedPod* pod : gang.by_rank) {
    if (pod != nullptr && pod->created && (!first || *pod->created < *first)) first = pod->created;
  }
  return first;
}

Words refused_words(const View& view, const Gang& gang, const Refusal& refusal) {
  const int64_t pods = pods_in(gang);
  if (pods == 0) return {refusal.reason, refusal.sentence};
  return {refusal.reason, "Only " + std::to_string(pods) + " of " + std::to_string(view.job.spec.nodes) +
                              " pods could be created. " + refusal.sentence};
}

// An attempt that could not begin: not a failure, and counted nowhere. status.startupTime stays, so that the
// startup deadline ends a chain of these.
Draft released(const View& view, Draft draft, const Words& words) {
  draft.emit(EventType::kWarning, kEventGangReleased,
             words.message + " The pods that were created are released for others meanwhile.");
  draft.status.attempt += 1;
  draft.status.nodes = no_pods(view.job);
  draft = waiting(view, std::move(draft), words);
  delete_every_pod(view, draft);
  return draft;
}

Draft refused(const View& view, Draft draft, const Gang& gang, const std::vector<Action>& missing) {
  const Rejection& rejection = view.observed.rejections.front();
  const Refusal refusal = understand(rejection);
  const Words words = refused_words(view, gang, refusal);
  const bool needs_change = refusal.outlook == Outlook::kNeedsChange;
  if (is_news(view, needs_change ? kConditionStalled : kConditionReconciling, refusal.reason)) {
    draft.emit(EventType::kWarning, refusal.reason.c_str(), words.message);
  }
  if (const auto since = first_created(gang)) {
    const TimePoint end =
        *since + partial_gang_hold(view.job.metadata.uid, draft.status.attempt, view.settings);
    if (end <= view.now) return released(view, std::move(draft), words);
    draft.wake_at(end);
  }
  draft.status = needs_change ? as_stalled(std::move(draft.status), words, view.mark())
                              : as_starting(std::move(draft.status), words, view.mark());
  const TimePoint due = creation_due(rejection, pods_in(gang) > 0, view.job.metadata.uid, view.settings);
  if (view.now < due) {
    draft.wake_at(due);
  } else {
    draft.actions.insert(draft.actions.end(), missing.begin(), missing.end());
  }
  return draft;
}

Draft without_its_name(const View& view, Draft draft) {
  const NameConflict& conflict = view.observed.conflicts.front();
  draft.wake_at(view.now + name_retry(conflict, view.settings));
  if (conflict.of_predecessor) {
    return waiting(view, std::move(draft),
                   {kReasonWaitingForOldJob, "Waiting until " + conflict.kind + " " + conflict.name +
                                                 " of an earlier job of this name is deleted."});
  }
  draft.status =
      as_stalled(std::move(draft.status),
                 {kReasonNameConflict, "A " + conflict.kind + " named " + conflict.name +
                                           " exists and is not this job's. Delete it, or give the job "
                                           "another name."},
                 view.mark());
  if (waits_for_its_name(draft.status)) draft.status.startup_time.reset();
  return draft;
}

// There are pods to be made, and nothing of an earlier attempt is in their way.
Draft creating(const View& view, Draft draft, const Gang& gang, const std::vector<Action>& missing) {
  if (!view.observed.conflicts.empty()) return without_its_name(view, std::move(draft));
  if (!view.observed.rejections.empty()) return refused(view, std::move(draft), gang, missing);
  draft.actions.insert(draft.actions.end(), missing.begin(), missing.end());
  // Until every child is there the name may still be taken.
  if (is_stalled_by_name(draft.status)) return draft;
  if (says(draft.status, kConditionReconciling, kReasonWaitingForOldJob)) return draft;
  return waiting(view, std::move(draft), {kReasonStarting, "The pods are being created."});
}

// --- All are there
// -------------------------------------------------------------------------------------------

Draft held_up(const View& view, Draft draft, const Gang& gang) {
  draft.wake_at(next_trouble(gang, view.now, view.settings));
  const auto trouble = gang_trouble(gang, view.now, view.settings);
  if (!trouble) return waiting(view, std::move(draft), {kReasonStarting, waiting_for(gang)});
  if (trouble->is_warning && is_news(view, kConditionReconciling, trouble->reason)) {
    draft.emit(EventType::kWarning, trouble->reason.c_str(), trouble->sentence);
  }
  return waiting(view, std::move(draft), {trouble->reason, trouble->sentence});
}

Draft running(const View& view, Draft draft) {
  if (!has_condition(draft.status, kConditionRunning)) {
    draft.emit(EventType::kNormal, kEventRunning,
               "All pods of attempt " + std::to_string(draft.status.attempt) + " run.");
  }
  draft.status = as_running(std::move(draft.status), view.mark());
  draft.wake_at(view.now + view.settings.progress_interval);
  if (!view.observed.progress) return draft;
  const auto& before = view.job.status.training;
  const TrainingStatus next = training_from(*view.observed.progress, before, view.observed.moved, view.now);
  if (is_progress_due(next, before, view.settings)) draft.status.training = next;
  return draft;
}

}  // namespace

std::optional<Words> refusal_before_start(const View& view) {
  const TrainingJobSpec& spec = view.job.spec;
  if (!spec.has_config() && !template_trainer(spec).is_object()) {
    return Words{kReasonInvalidTemplate,
                 "Neither spec.config nor a container trainer in spec.template is there."};
  }
  if (spec.has_config() && view.settings.check_config) {
    if (auto message = view.settings.check_config(spec)) return Words{kReasonInvalidConfig, *message};
  }
  return std::nullopt;
}

Draft started(const View& view, Draft draft) {
  const bool resumes = has_condition(view.job.status, kConditionSuspended) || draft.status.attempt > 0;
  const int64_t generation = draft.status.observed_generation;
  draft.status = started_status(view.job, view.settings, view.mark());
  draft.status.observed_generation = generation;
  draft.emit(
      EventType::kNormal, resumes ? kEventResumed : kEventStarted,
      (resumes ? "Resumes as attempt " : "Starts as attempt ") + std::to_string(draft.status.attempt) + ".");
  warn_of_overrides(view, draft);
  return draft;
}

Draft bring_up(const View& view, Draft draft, const Gang& gang) {
  if (!gang.old.empty()) {
    delete_all(view, gang.old, draft);
    return waiting(view, std::move(draft),
                   {kReasonWaitingForOldPods, "Waiting for " + std::to_string(gang.old.size()) +
                                                  " pod(s) of an earlier attempt to end."});
  }
  const TimePoint due = restart_due(view.job, draft.status, view.settings);
  if (view.now < due) {
    draft.wake_at(due);
    return waiting(view, std::move(draft),
                   {kReasonBackingOff, "Attempt " + std::to_string(draft.status.attempt) + " starts at " +
                                           "the end of its back-off. " + draft.status.last_failure->message});
  }
  if (!draft.status.startup_time && !waits_for_its_name(draft.status)) {
    draft.status.startup_time = std::chrono::floor<std::chrono::seconds>(view.now);
  }
  drop_old_config_maps(view, draft);
  const std::vector<Action> missing = missing_children(view.job, draft.status, gang, view.observed);
  const bool lacks_children = !missing.empty();
  if (lacks_children && !all_started(gang)) return creating(view, std::move(draft), gang, missing);
  draft.actions.insert(draft.actions.end(), missing.begin(), missing.end());
  return all_started(gang) ? running(view, std::move(draft)) : held_up(view, std::move(draft), gang);
}

Duration name_retry(const NameConflict& conflict, const Settings& settings) {
  return conflict.of_predecessor ? settings.predecessor_retry : settings.name_conflict_retry;
}

bool waits_for_its_name(const TrainingJobStatus& status) {
  return status.nodes.active == 0 && is_stalled_by_name(status);
}

}  // namespace coxswain
