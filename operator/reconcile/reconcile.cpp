#include "operator/reconcile/reconcile.h"

#include <algorithm>

#include "operator/reconcile/backoff.h"
#include "operator/reconcile/clean_pods.h"
#include "operator/reconcile/conditions.h"
#include "operator/reconcile/deadlines.h"
#include "operator/reconcile/failure_cause.h"
#include "operator/reconcile/progress.h"
#include "operator/reconcile/reasons.h"
#include "operator/reconcile/render.h"
#include "operator/reconcile/suspend.h"
#include "operator/reconcile/ttl.h"

namespace coxswain {
namespace {

// What every step of a pass looks at.
struct View {
  const TrainingJob& job;
  const Observed& observed;
  TimePoint now;
  const Settings& settings;

  Mark mark() const { return {now, job.metadata.generation}; }
};

// A plan in the making. `status` becomes Plan::status if it differs from what is written.
struct Draft {
  TrainingJobStatus status;
  std::vector<Action> actions;
  std::vector<Event> events;
  std::optional<TimePoint> wake;

  void wake_at(std::optional<TimePoint> time) {
    if (time && (!wake || *time < *wake)) wake = time;
  }
  void emit(EventType type, const char* reason, std::string message) {
    if (message.size() > 1024) message = message.substr(0, 1021) + "...";
    events.push_back({type, reason, std::move(message)});
  }
};

Plan finish(const View& view, Draft draft) {
  Plan plan;
  plan.actions = std::move(draft.actions);
  plan.events = std::move(draft.events);
  if (draft.status != view.job.status) plan.status = std::move(draft.status);
  if (draft.wake) plan.requeue_after = std::max<Duration>(*draft.wake - view.now, Duration(1));
  return plan;
}

void delete_all(const View& view, const std::vector<const ObservedPod*>& pods, Draft& draft) {
  const Deletions deletions = delete_pods(pods, view.now, view.settings);
  draft.actions.insert(draft.actions.end(), deletions.pods.begin(), deletions.pods.end());
  draft.wake_at(deletions.look_again);
}

NodesStatus no_pods(const TrainingJob& job) {
  NodesStatus nodes;
  nodes.desired = job.spec.nodes;
  return nodes;
}

// --- The end
// ----------------------------------------------------------------------------------------------------

void clean_up(const View& view, Draft& draft) {
  delete_all(view, pods_to_clean(view.job, draft.status, view.observed), draft);
  draft.wake_at(deletion_due(view.job, draft.status));
}

Draft completed(const View& view, Draft draft) {
  if (view.observed.progress) {
    draft.status.training = training_from(*view.observed.progress, view.job.status.training, view.now);
  }
  const std::string message = "All " + std::to_string(view.job.spec.nodes) + " pods ended with exit code 0.";
  draft.status = as_complete(std::move(draft.status), {kReasonAllPodsSucceeded, message}, view.mark());
  draft.emit(EventType::kNormal, kEventCompleted, message);
  clean_up(view, draft);
  return draft;
}

Draft failed(const View& view, Draft draft, const Words& words) {
  draft.status = as_failed(std::move(draft.status), words, view.mark());
  draft.emit(EventType::kWarning, kEventFailed, words.reason + ": " + words.message);
  clean_up(view, draft);
  return draft;
}

// Complete and Failed are for ever: only what is still going on below them is counted and cleaned.
Draft after_the_end(const View& view, Draft draft) {
  const auto due = deletion_due(view.job, draft.status);
  if (due && *due <= view.now) {
    draft.actions.push_back(DeleteJob{view.job.metadata.uid});
    draft.emit(EventType::kNormal, kEventDeleted, "ttlSecondsAfterFinished is over; the job is deleted.");
    return draft;
  }
  const NodesStatus nodes = count_nodes(sort_pods(view.job, draft.status.attempt, view.observed));
  draft.status.nodes.active = nodes.active;
  draft.status.nodes.ready = nodes.ready;
  clean_up(view, draft);
  return draft;
}

// --- Restart
// ----------------------------------------------------------------------------------------------------

void charge(Charge charge, RestartsStatus& restarts) {
  if (charge == Charge::kCounted) ++restarts.counted;
  if (charge == Charge::kDisruption) ++restarts.disruptions;
}

Draft restarted(const View& view, Draft draft, const GangFailure& failure) {
  TrainingJobStatus& status = draft.status;
  status.last_failure = LastFailure{std::chrono::floor<std::chrono::seconds>(view.now),
                                    status.attempt,
                                    failure.pod,
                                    failure.node_rank,
                                    failure.cause,
                                    failure.exit_code,
                                    failure.message};
  if (failure.charge == Charge::kFinal)
    return failed(view, std::move(draft), {kReasonBadInput, failure.message});
  const int64_t limit = view.job.spec.run_policy.backoff_limit;
  if (failure.charge == Charge::kCounted && status.restarts.counted >= limit) {
    return failed(view, std::move(draft),
                  {kReasonBackoffLimitExceeded,
                   "backoffLimit (" + std::to_string(limit) + ") restarts are used up. " + failure.message});
  }
  charge(failure.charge, status.restarts);
  status.attempt += 1;
  status.nodes = no_pods(view.job);
  status = as_restarting(std::move(status), {failure.cause, failure.message}, view.mark());
  draft.emit(EventType::kWarning, kEventRestarting, failure.message + " All pods start again.");
  std::vector<const ObservedPod*> pods;
  for (const ObservedPod& pod : view.observed.pods) pods.push_back(&pod);
  delete_all(view, pods, draft);
  draft.wake_at(restart_due(view.job, status, view.settings));
  return draft;
}

// --- Suspension
// -------------------------------------------------------------------------------------------------

Draft suspended(const View& view, Draft draft) {
  if (draft.status.start_time) {
    const Gang gang = sort_pods(view.job, draft.status.attempt, view.observed);
    if (all_succeeded(gang)) {
      draft.status.nodes = count_nodes(gang);
      return completed(view, std::move(draft));
    }
    draft.emit(EventType::kNormal, kEventSuspended,
               "spec.suspend is true; the pods are asked to save and end.");
  }
  const bool has_pods = !view.observed.pods.empty();
  draft.status.nodes.desired = view.job.spec.nodes;
  draft.status = suspended_status(std::move(draft.status), has_pods, view.mark());
  delete_all(view, sort_pods(view.job, draft.status.attempt, view.observed).old, draft);
  return draft;
}

// --- Start
// ------------------------------------------------------------------------------------------------------

// What is wrong before a pod exists.
std::optional<Words> refusal(const View& view) {
  const TrainingJobSpec& spec = view.job.spec;
  if (!spec.has_config() && !template_trainer(spec).is_object()) {
    return Words{kReasonInvalidTemplate,
                 "Neither spec.config nor a container trainer in spec.template is there."};
  }
  if (spec.has_config() && view.settings.check_config) {
    if (auto message = view.settings.check_config(spec.config)) return Words{kReasonInvalidConfig, *message};
  }
  return std::nullopt;
}

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

Draft waiting(const View& view, Draft draft, const Words& words) {
  draft.status = as_starting(std::move(draft.status), words, view.mark());
  return draft;
}

bool stalled_by_name(const TrainingJobStatus& status) {
  const Condition* stalled = find_condition(status, kConditionStalled);
  return stalled != nullptr && stalled->status && stalled->reason == kReasonNameConflict;
}

// There are pods to be made, and nothing of an earlier attempt is in their way.
Draft creating(const View& view, Draft draft, const std::vector<Action>& missing) {
  if (!view.observed.conflicts.empty()) {
    const NameConflict& conflict = view.observed.conflicts.front();
    draft.wake_at(view.now + view.settings.name_conflict_retry);
    draft.status =
        as_stalled(std::move(draft.status),
                   {kReasonNameConflict, "A " + conflict.kind + " named " + conflict.name +
                                             " exists and is not this job's. Delete it, or give the job "
                                             "another name."},
                   view.mark());
    return draft;
  }
  if (!view.observed.rejections.empty()) {
    const Rejection& rejection = view.observed.rejections.front();
    return waiting(view, std::move(draft),
                   {kReasonCreateRefused, "The API server refused " + rejection.kind + " " + rejection.name +
                                              ": " + rejection.message});
  }
  draft.actions.insert(draft.actions.end(), missing.begin(), missing.end());
  // Until every child is there the name may still be taken.
  if (stalled_by_name(draft.status)) return draft;
  return waiting(view, std::move(draft), {kReasonStarting, "The pods are being created."});
}

// --- Running
// ----------------------------------------------------------------------------------------------------

Draft running(const View& view, Draft draft) {
  if (!has_condition(draft.status, kConditionRunning)) {
    draft.emit(EventType::kNormal, kEventRunning,
               "All pods of attempt " + std::to_string(draft.status.attempt) + " run.");
  }
  draft.status = as_running(std::move(draft.status), view.mark());
  draft.wake_at(view.now + view.settings.progress_interval);
  if (!view.observed.progress) return draft;
  const auto& before = view.job.status.training;
  const TrainingStatus next = training_from(*view.observed.progress, before, view.now);
  if (is_progress_due(next, before, view.settings)) draft.status.training = next;
  return draft;
}

void drop_old_config_maps(const View& view, Draft& draft) {
  for (const int64_t attempt : view.observed.config_map_attempts) {
    if (attempt < draft.status.attempt) {
      draft.actions.push_back(DeleteConfigMap{config_map_name(view.job, attempt)});
    }
  }
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
  drop_old_config_maps(view, draft);
  const std::vector<Action> missing = missing_children(view.job, draft.status, gang, view.observed);
  const bool lacks_children = !missing.empty();
  if (lacks_children && !all_started(gang)) return creating(view, std::move(draft), missing);
  draft.actions.insert(draft.actions.end(), missing.begin(), missing.end());
  if (all_started(gang)) return running(view, std::move(draft));
  const ObservedPod* held_up = waiting_pod(gang);
  const Words words = held_up == nullptr
                          ? Words{kReasonStarting, "Waiting for all pods to run."}
                          : Words{held_up->waiting_reason, "Waiting for " + waiting_words(*held_up)};
  return waiting(view, std::move(draft), words);
}

std::optional<Words> permanent_rejection(const Observed& observed) {
  for (const Rejection& rejection : observed.rejections) {
    if (!rejection.permanent) continue;
    return Words{kReasonInvalidTemplate, "The API server refused " + rejection.kind + " " + rejection.name +
                                             ": " + rejection.message};
  }
  return std::nullopt;
}

Draft active(const View& view, Draft draft) {
  if (!draft.status.start_time) {
    if (auto words = refusal(view)) return failed(view, std::move(draft), *words);
    draft = started(view, std::move(draft));
  }
  const Gang gang = sort_pods(view.job, draft.status.attempt, view.observed);
  draft.status.nodes = count_nodes(gang);
  if (all_succeeded(gang)) return completed(view, std::move(draft));

  const auto deadline = active_deadline(view.job, draft.status);
  if (deadline && *deadline <= view.now) {
    const auto seconds = std::to_string(*view.job.spec.run_policy.active_deadline_seconds);
    return failed(view, std::move(draft),
                  {kReasonDeadlineExceeded, "The job ran for activeDeadlineSeconds (" + seconds + " s)."});
  }
  draft.wake_at(deadline);

  const GangVerdict verdict = judge(view.job, gang, view.now, view.settings);
  if (const auto* failure = std::get_if<GangFailure>(&verdict))
    return restarted(view, std::move(draft), *failure);
  if (const auto* settling = std::get_if<Settling>(&verdict)) {
    draft.wake_at(settling->until);
    return draft;
  }
  if (auto words = permanent_rejection(view.observed)) return failed(view, std::move(draft), *words);

  // With no pod at all and a taken name there is nothing to give up: the job waits for its name.
  const bool holds_nothing = draft.status.nodes.active == 0 && stalled_by_name(draft.status);
  const auto startup = startup_deadline(view.job, draft.status, gang, view.settings);
  if (startup && *startup <= view.now && !holds_nothing) {
    return restarted(view, std::move(draft), startup_failure(view.job, gang));
  }
  if (!holds_nothing) draft.wake_at(startup);
  return bring_up(view, std::move(draft), gang);
}

}  // namespace

Plan reconcile(const TrainingJob& job, const Observed& observed, TimePoint now, const Settings& settings) {
  if (job.metadata.deletion_timestamp) return {};  // garbage collection takes the children
  const View view{job, observed, now, settings};
  Draft draft;
  draft.status = job.status;
  draft.status.observed_generation = job.metadata.generation;
  if (is_finished(job.status)) return finish(view, after_the_end(view, std::move(draft)));
  if (job.spec.suspend) return finish(view, suspended(view, std::move(draft)));
  return finish(view, active(view, std::move(draft)));
}

}  // namespace coxswain
