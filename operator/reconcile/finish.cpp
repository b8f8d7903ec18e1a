#include "operator/reconcile/finish.h"

#include "operator/reconcile/clean_pods.h"
#include "operator/reconcile/gitops.h"
#include "operator/reconcile/progress.h"
#include "operator/reconcile/reasons.h"
#include "operator/reconcile/render.h"
#include "operator/reconcile/ttl.h"

namespace coxswain {
namespace {

void clean_up(const View& view, Draft& draft) {
  delete_all(view, pods_to_clean(view.job, draft.status, view.observed), draft);
  draft.wake_at(deletion_due(view.job, draft.status));
}

void count_what_is_left(const View& view, Draft& draft) {
  const NodesStatus nodes = count_nodes(sort_pods(view.job, draft.status.attempt, view.observed));
  draft.status.nodes.active = nodes.active;
  draft.status.nodes.ready = nodes.ready;
}

Draft stripped(const View& view, Draft draft, const std::string& tool) {
  count_what_is_left(view, draft);
  delete_every_pod(view, draft);
  if (view.observed.has_service) draft.actions.push_back(DeleteChild{"Service", service_name(view.job)});
  for (const int64_t attempt : view.observed.config_map_attempts) {
    draft.actions.push_back(DeleteChild{"ConfigMap", config_map_name(view.job, attempt)});
  }
  if (draft.actions.empty()) return draft;
  draft.emit(EventType::kNormal, kEventDeleted,
             "ttlSecondsAfterFinished is over. " + tool +
                 " applies this job and would apply it again if it were deleted, so it is kept; its pods, "
                 "Service and config maps are deleted.");
  return draft;
}

}  // namespace

Draft completed(const View& view, Draft draft) {
  if (view.observed.progress) {
    draft.status.training =
        training_from(*view.observed.progress, view.job.status.training, view.observed.moved, view.now);
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

Draft after_the_end(const View& view, Draft draft) {
  const auto due = deletion_due(view.job, draft.status);
  if (due && *due <= view.now) {
    if (const auto tool = gitops_tool(view.job.metadata)) return stripped(view, std::move(draft), *tool);
    draft.actions.push_back(DeleteJob{view.job.metadata.uid});
    draft.emit(EventType::kNormal, kEventDeleted, "ttlSecondsAfterFinished is over; the job is deleted.");
    return draft;
  }
  count_what_is_left(view, draft);
  clean_up(view, draft);
  return draft;
}

}  // namespace coxswain
