#include "operator/reconcile/bring_up.h"

#include <algorithm>

#include "operator/reconcile/backoff.h"
#include "operator/reconcile/hang.h"
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

std::string old_pods_in_words(const Gang& gang) {
  const ObservedPod& first = *gang.old.front();
  std::string words = "Waiting for " + std::to_string(gang.old.size()) +
                      " pod(s) of an earlier attempt to end: " + first.name;
  if (!first.node.empty()) words += " on node " + first.node;
  if (!first.finalizers.empty()) words += ", which the finalizer " + first.finalizers.front() + " holds";
  return words + (gang.old.size() > 1 ? ", …" : ".");
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

// Why pods cannot be created, and whether that lasts until somebody acts.
struct Obstacle {
  Words words;
  bool needs_change = false;
};

Draft held_back(const View& view, Draft draft, const Obstacle& obstacle) {
  draft.status = obstacle.needs_change ? as_stalled(std::move(draft.status), obstacle.words, view.mark())
                                       : as_starting(std::move(draft.status), obstacle.words, view.mark());
  return draft;
}

// An attempt that could not begin: not a failure, and counted nowhere. status.startupTime stays, so that the
// startup deadline ends a chain of these.
Draft released(const View& view, Draft draft, const Obstacle& obstacle) {
  draft.emit(EventType::kWarning, kEventGangReleased,
             obstacle.words.message + " The pods that were created are released for others meanwhile.");
  draft.status.attempt += 1;
  draft.status.nodes = no_pods(view.job);
  draft = held_back(view, std::move(draft), obstacle);
  delete_every_pod(view, draft);
  return draft;
}

// Nothing for a gang of which there is nothing.
std::optional<TimePoint> release_due(const View& view, const Draft& draft, const Gang& gang) {
  const auto since = first_created(gang);
  if (!since) return std::nullopt;
  return *since + partial_gang_hold(view.job.metadata.uid, draft.status.attempt, view.settings);
}

void tell_if_new(const View& view, const Obstacle& obstacle, Draft& draft) {
  const char* condition = obstacle.needs_change ? kConditionStalled : kConditionReconciling;
  if (!is_news(view, condition, obstacle.words.reason)) return;
  draft.emit(EventType::kWarning, obstacle.words.reason.c_str(), obstacle.words.message);
}

Draft refused(const View& view, Draft draft, const Gang& gang, const std::vector<Action>& missing) {
  const Rejection& rejection = view.observed.rejections.front();
  const Refusal refusal = understand(rejection);
  const Obstacle obstacle = {refused_words(view, gang, refusal), refusal.outlook == Outlook::kNeedsChange};
  tell_if_new(view, obstacle, draft);
  const auto release = release_due(view, draft, gang);
  if (release && *release <= view.now) return released(view, std::move(draft), obstacle);
  draft.wake_at(release);
  draft = held_back(view, std::move(draft), obstacle);
  const TimePoint due = creation_due(rejection, pods_in(gang) > 0, view.job.metadata.uid, view.settings);
  if (view.now < due) {
    draft.wake_at(due);
  } else {
    draft.actions.insert(draft.actions.end(), missing.begin(), missing.end());
  }
  return draft;
}

Draft without_its_name(const View& view, Draft draft, const Gang& gang) {
  const NameConflict& conflict = view.observed.conflicts.front();
  draft.wake_at(view.now + name_retry(conflict, view.settings));
  const Obstacle obstacle = {name_conflict_words(conflict), !conflict.of_predecessor};
  if (conflict.of_predecessor) return held_back(view, std::move(draft), obstacle);
  tell_if_new(view, obstacle, draft);
  const auto release = release_due(view, draft, gang);
  if (release && *release <= view.now) return released(view, std::move(draft), obstacle);
  draft.wake_at(release);
  draft = held_back(view, std::move(draft), obstacle);
  if (waits_for_its_name(draft.status)) draft.status.startup_time.reset();
  return draft;
}

// There are pods to be made, and nothing of an earlier attempt is in their way.
Draft creating(const View& view, Draft draft, const Gang& gang, const std::vector<Action>& missing) {
  if (!view.observed.conflicts.empty()) return without_its_name(view, std::move(draft), gang);
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

// Makes again what a running gang has lost, its Service or ConfigMap. What keeps that from being made does
// not stop the pods.
std::optional<Words> restore(const View& view, const std::vector<Action>& missing, Draft& draft) {
  if (missing.empty()) return std::nullopt;
  const std::string still = " The pods run on meanwhile.";
  if (!view.observed.conflicts.empty()) {
    const NameConflict& conflict = view.observed.conflicts.front();
    draft.wake_at(view.now + name_retry(conflict, view.settings));
    const Words words = name_conflict_words(conflict);
    return Words{words.reason, words.message + still};
  }
  if (!view.observed.rejections.empty()) {
    const Rejection& rejection = view.observed.rejections.front();
    const Refusal refusal = understand(rejection);
    const TimePoint due = creation_due(rejection, /*holds_pods=*/false, view.job.metadata.uid, view.settings);
    if (view.now < due) {
      draft.wake_at(due);
    } else {
      draft.actions.insert(draft.actions.end(), missing.begin(), missing.end());
    }
    return Words{refusal.reason, refusal.sentence + still};
  }
  draft.actions.insert(draft.actions.end(), missing.begin(), missing.end());
  return std::nullopt;
}

// The message of Running: that they run, and what is amiss though they do. An event tells when that begins.
std::string running_words(const View& view, const Gang& gang, const std::vector<Action>& missing,
                          Draft& draft) {
  const Condition* before = find_condition(view.job.status, kConditionRunning);
  const bool was_amiss = before != nullptr && before->status && before->message != kAllPodsRun;
  auto trouble = restore(view, missing, draft);
  if (!trouble) trouble = unheard(view.job, gang, view.observed, view.now);
  if (!trouble) {
    // What is being made again may yet be refused once more.
    return was_amiss && !missing.empty() ? before->message : kAllPodsRun;
  }
  if (!was_amiss) draft.emit(EventType::kWarning, trouble->reason.c_str(), trouble->message);
  return std::string(kAllPodsRun) + " " + trouble->message;
}

Draft running(const View& view, Draft draft, const Gang& gang, const std::vector<Action>& missing) {
  if (!has_condition(draft.status, kConditionRunning)) {
    draft.emit(EventType::kNormal, kEventRunning,
               "All pods of attempt " + std::to_string(draft.status.attempt) + " run.");
  }
  const std::string words = running_words(view, gang, missing, draft);
  draft.status = as_running(std::move(draft.status), words, view.mark());
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
    return waiting(view, std::move(draft), {kReasonWaitingForOldPods, old_pods_in_words(gang)});
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
  if (all_started(gang)) return running(view, std::move(draft), gang, missing);
  if (!missing.empty()) return creating(view, std::move(draft), gang, missing);
  return held_up(view, std::move(draft), gang);
}

Duration name_retry(const NameConflict& conflict, const Settings& settings) {
  return conflict.of_predecessor ? settings.predecessor_retry : settings.name_conflict_retry;
}

bool waits_for_its_name(const TrainingJobStatus& status) {
  return status.nodes.active == 0 && is_stalled_by_name(status);
}

}  // namespace coxswain
