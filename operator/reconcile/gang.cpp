#include "operator/reconcile/gang.h"

#include <algorithm>

#include "operator/reconcile/render.h"

namespace coxswain {

Gang sort_pods(const TrainingJob& job, int64_t attempt, const Observed& observed) {
  Gang gang;
  gang.by_rank.resize(static_cast<size_t>(std::max<int64_t>(0, job.spec.nodes)));
  for (const ObservedPod& pod : observed.pods) {
    const bool has_place = pod.node_rank >= 0 && pod.node_rank < job.spec.nodes;
    if (pod.attempt != attempt) {
      gang.old.push_back(&pod);
    } else if (has_place) {
      gang.by_rank[static_cast<size_t>(pod.node_rank)] = &pod;
    } else {
      gang.surplus.push_back(&pod);
    }
  }
  return gang;
}

bool has_succeeded(const ObservedPod& pod) {
  if (pod.termination) return pod.termination->exit_code == 0;
  return pod.phase == PodPhase::kSucceeded;
}

bool has_failed(const ObservedPod& pod) {
  if (pod.termination) return pod.termination->exit_code != 0;
  return pod.phase == PodPhase::kFailed;
}

bool has_started(const ObservedPod& pod) {
  return pod.termination || pod.phase != PodPhase::kPending;
}

bool all_succeeded(const Gang& gang) {
  return std::all_of(gang.by_rank.begin(), gang.by_rank.end(),
                     [](const ObservedPod* pod) { return pod != nullptr && has_succeeded(*pod); });
}

bool all_started(const Gang& gang) {
  return std::all_of(gang.by_rank.begin(), gang.by_rank.end(),
                     [](const ObservedPod* pod) { return pod != nullptr && has_started(*pod); });
}

NodesStatus count_nodes(const Gang& gang) {
  NodesStatus nodes;
  nodes.desired = static_cast<int64_t>(gang.by_rank.size());
  for (const ObservedPod* pod : gang.by_rank) {
    if (pod == nullptr) continue;
    const bool failed = has_failed(*pod);
    const bool succeeded = has_succeeded(*pod);
    nodes.failed += failed ? 1 : 0;
    nodes.succeeded += succeeded ? 1 : 0;
    nodes.active += failed || succeeded ? 0 : 1;
    nodes.ready += !failed && !succeeded && pod->ready && pod->phase == PodPhase::kRunning ? 1 : 0;
  }
  return nodes;
}

std::vector<Action> missing_children(const TrainingJob& job, const TrainingJobStatus& status,
                                     const Gang& gang, const Observed& observed) {
  std::vector<Action> actions;
  if (!observed.has_service)
    actions.push_back(CreateChild{"Service", service_name(job), render_service(job)});
  if (job.spec.has_config() && observed.config_map_attempts.count(status.attempt) == 0) {
    actions.push_back(CreateChild{"ConfigMap", config_map_name(job, status.attempt),
                                  render_config_map(job, status.attempt)});
  }
  for (size_t rank = 0; rank < gang.by_rank.size(); ++rank) {
    if (gang.by_rank[rank] != nullptr) continue;
    const auto node_rank = static_cast<int64_t>(rank);
    actions.push_back(CreateChild{"Pod", pod_name(job, node_rank),
                                  render_pod(job, status.attempt, node_rank, status.runtime_image)});
  }
  return actions;
}

}  // namespace coxswain
