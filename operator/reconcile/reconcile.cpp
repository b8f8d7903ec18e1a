#include "operator/reconcile/reconcile.h"

#include <algorithm>

#include "operator/reconcile/backoff.h"
#include "operator/reconcile/bring_up.h"
#include "operator/reconcile/deadlines.h"
#include "operator/reconcile/draft.h"
#include "operator/reconcile/finish.h"
#include "operator/reconcile/hang.h"
#include "operator/reconcile/node_loss.h"
#include "operator/reconcile/reasons.h"
#include "operator/reconcile/refusal.h"
#include "operator/reconcile/suspend.h"

namespace coxswain {
namespace {

Plan finish(const View& view, Draft draft) {
  Plan plan;
  plan.actions = std::move(draft.actions);
  plan.events = std::move(draft.events);
  if (draft.status != view.job.status) plan.status = std::move(draft.status);
  if (draft.wake) plan.requeue_after = std::max<Duration>(*draft.wake - view.now, Duration(1));
  return plan;
}

// --- Restart
// ----------------------------------------------------------------------------------------------------

void charge(Charge charge, RestartsStatus& restarts) {
  if (charge == Charge::kCounted || charge == Charge::kHang) ++restarts.counted;
  if (charge == Charge::kHang) ++restarts.hangs;
  if (charge == Charge::kDisruption) ++restarts.disruptions;
}

bool is_counted(const GangFailure& failure) {
  return failure.charge == Charge::kCounted || failure.charge == Charge::kHang;
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
    return failed(view, std::move(draft), {failure.cause, failure.message});
  const int64_t limit = view.job.spec.run_policy.backoff_limit;
  if (is_counted(failure) && status.restarts.counted >= limit) {
    return failed(view, std::move(draft),
                  {kReasonBackoffLimitExceeded,
                   "backoffLimit (" + std::to_string(limit) + ") restarts are used up. " + failure.message});
  }
  charge(failure.charge, status.restarts);
  status.attempt += 1;
  status.nodes = no_pods(view.job);
  status.startup_time.reset();
  status = as_restarting(std::move(status), {failure.cause, failure.message}, view.mark());
  draft.emit(EventType::kWarning, kEventRestarting, failure.message + " All pods start again.");
  delete_every_pod(view, draft);
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

// --- Start and run
// ----------------------------------------------------------------------------------------------

std::optional<Words> refused_for_good(const Observed& observed) {
  for (const Rejection& rejection : observed.rejections) {
    const Refusal refusal = understand(rejection);
    if (refusal.outlook == Outlook::kNever) return Words{refusal.reason, refusal.sentence};
  }
  return std::nullopt;
}

// What time alone makes a failure of a gang in which nothing has failed; else when that will be.
GangVerdict overdue(const View& view, const TrainingJobStatus& status, const Gang& gang) {
  // With no pod at all and a taken name there is nothing to give up: the job waits for its name.
  if (const auto deadline = startup_deadline(view.job, status, gang);
      deadline && !waits_for_its_name(status)) {
    if (view.now < *deadline) return Settling{*deadline};
    return startup_failure(view.job, gang, view.observed, view.now, view.settings);
  }
  return judge_hang(view.job, gang, view.observed, view.now);
}

Draft active(const View& view, Draft draft) {
  if (!draft.status.start_time) {
    if (auto words = refusal_before_start(view)) return failed(view, std::move(draft), *words);
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
  draft.wake_at(next_node_loss(gang, view.job.spec.run_policy, view.now));

  const GangVerdict verdict = judge(view.job, gang, view.now, view.settings);
  if (const auto* failure = std::get_if<GangFailure>(&verdict))
    return restarted(view, std::move(draft), *failure);
  if (const auto* settling = std::get_if<Settling>(&verdict)) {
    draft.wake_at(settling->until);
    return draft;
  }
  // Of what runs only its Service can be refused, and that stops nothing.
  if (auto words = refused_for_good(view.observed); words && !all_started(gang)) {
    return failed(view, std::move(draft), *words);
  }

  const GangVerdict late = overdue(view, draft.status, gang);
  if (const auto* failure = std::get_if<GangFailure>(&late))
    return restarted(view, std::move(draft), *failure);
  if (const auto* settling = std::get_if<Settling>(&late)) draft.wake_at(settling->until);
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
