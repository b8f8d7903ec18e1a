#include "operator/reconcile/draft.h"

#include "operator/reconcile/clean_pods.h"
#include "operator/reconcile/reasons.h"
#include "operator/reconcile/shortened.h"

namespace coxswain {

void Draft::wake_at(std::optional<TimePoint> time) {
  if (time && (!wake || *time < *wake)) wake = time;
}

void Draft::emit(EventType type, const char* reason, const std::string& message) {
  events.push_back({type, reason, shortened(message, 1024)});
}

void delete_all(const View& view, const std::vector<const ObservedPod*>& pods, Draft& draft) {
  const Deletions deletions = delete_pods(view.job.spec.run_policy, pods, view.now, view.settings);
  draft.actions.insert(draft.actions.end(), deletions.pods.begin(), deletions.pods.end());
  if (!deletions.forced.empty()) {
    std::string names;
    for (const ObservedPod* pod : deletions.forced) {
      names += (names.empty() ? "" : ", ") + pod->name + (pod->node.empty() ? "" : " on node " + pod->node);
    }
    draft.emit(EventType::kWarning, kEventForceDeleted,
               "Deleted by force, because its grace is over and it is still there: " + names + ".");
  }
  draft.wake_at(deletions.look_again);
}

void delete_every_pod(const View& view, Draft& draft) {
  std::vector<const ObservedPod*> pods;
  for (const ObservedPod& pod : view.observed.pods) pods.push_back(&pod);
  delete_all(view, pods, draft);
}

NodesStatus no_pods(const TrainingJob& job) {
  NodesStatus nodes;
  nodes.desired = job.spec.nodes;
  return nodes;
}

}  // namespace coxswain
