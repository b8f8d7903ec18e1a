// What is left out of objects before they are kept: a pod as a server sends it takes some ten times the
// memory of what a decision reads.
#pragma once

#include <string>
#include <vector>

#include "operator/client/api_client.h"

namespace coxswain {

// Of the metadata labels and annotations only where they are ours; of the spec the node, hostNetwork and the
// containers' names and ports; of the status phase, addresses, conditions and the containers' states.
void trim_pod(Json& pod);
// The bulk of what trim_pod drops, for ListOptions::unread.
std::vector<std::string> unread_of_pods();
// Only metadata without annotations, spec.unschedulable and spec.taints, and the conditions without the times
// of their heartbeats.
void trim_node(Json& node);
// Only metadata, and of that as trim_pod keeps it.
void trim_to_metadata(Json& object);

}  // namespace coxswain
