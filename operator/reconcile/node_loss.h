// runPolicy.nodeLostTimeoutSeconds: nodes that are not Ready, and their pods.
#pragma once

#include <optional>
#include <string>

#include "operator/reconcile/gang.h"

namespace coxswain {

// The node of the pod is known not to be Ready, and the pod has not ended.
bool is_on_unready_node(const ObservedPod& pod);

// When the node of that pod has been not Ready for nodeLostTimeoutSeconds; nothing where it is Ready, where
// nothing is known of it, or where no node of the cluster is Ready.
std::optional<TimePoint> node_lost_at(const ObservedPod& pod, const RunPolicy& policy);

// The first such moment that is yet to come.
std::optional<TimePoint> next_node_loss(const Gang& gang, const RunPolicy& policy, TimePoint now);

// "Node n of pod j-1 is not Ready (NodeStatusUnknown): Kubelet stopped posting node status."
std::string unready_words(const ObservedPod& pod);

}  // namespace coxswain
