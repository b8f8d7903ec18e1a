#include "operator/reconcile/node_loss.h"

#include "operator/reconcile/shortened.h"

namespace coxswain {

bool is_on_unready_node(const ObservedPod& pod) {
  return pod.node_seen && !pod.node_seen->ready && !has_succeeded(pod) && !has_failed(pod);
}

std::optional<TimePoint> node_lost_at(const ObservedPod& pod, const RunPolicy& policy) {
  if (!is_on_unready_node(pod) || !pod.node_seen->since) return std::nullopt;
  return *pod.node_seen->since + std::chrono::seconds(policy.node_lost_timeout_seconds);
}

std::optional<TimePoint> next_node_loss(const Gang& gang, const RunPolicy& policy, TimePoint now) {
  std::optional<TimePoint> next;
  for (const ObservedPod* pod : gang.by_rank) {
    if (pod == nullptr) continue;
    const auto lost = node_lost_at(*pod, policy);
    if (lost && *lost > now && (!next || *lost < *next)) next = lost;
  }
  return next;
}

std::string unready_words(const ObservedPod& pod) {
  const ObservedNode& node = *pod.node_seen;
  return "Node " + pod.node + " of pod " + pod.name + " is not Ready" +
         (node.reason.empty() ? "" : " (" + node.reason + ")") +
         (node.message.empty() ? "." : ": " + shortened(node.message, 400));
}

}  // namespace coxswain
