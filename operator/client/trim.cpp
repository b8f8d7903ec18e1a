#include "operator/client/trim.h"

#include <initializer_list>

namespace coxswain {

namespace {

void keep_only(Json& object, std::initializer_list<const char*> fields) {
  if (!object.is_object()) return;
  Json kept = Json::object();
  for (const char* field : fields) {
    if (const auto found = object.find(field); found != object.end()) kept[field] = std::move(*found);
  }
  object = std::move(kept);
}

}  // namespace

void trim_pod(Json& pod) {
  const auto spec = pod.find("spec");
  if (spec == pod.end()) return;
  keep_only(*spec, {"nodeName", "hostNetwork", "containers"});
  const auto containers = spec->find("containers");
  if (containers == spec->end() || !containers->is_array()) return;
  for (Json& container : *containers) keep_only(container, {"name", "ports"});
}

std::vector<std::string> unread_of_pods() {
  std::vector<std::string> unread = {"spec/affinity", "spec/initContainers", "spec/securityContext",
                                     "spec/tolerations", "spec/volumes"};
  for (const char* field :
       {"args", "command", "env", "envFrom", "resources", "securityContext", "volumeMounts"}) {
    unread.push_back(std::string("spec/containers/*/") + field);
  }
  return unread;
}

void trim_node(Json& node) {
  keep_only(node, {"apiVersion", "kind", "metadata", "spec", "status"});
  if (const auto meta = node.find("metadata"); meta != node.end() && meta->is_object()) {
    meta->erase("annotations");
  }
  if (const auto spec = node.find("spec"); spec != node.end()) keep_only(*spec, {"unschedulable", "taints"});
  const auto status = node.find("status");
  if (status == node.end()) return;
  keep_only(*status, {"conditions"});
  const auto conditions = status->find("conditions");
  if (conditions == status->end() || !conditions->is_array()) return;
  for (Json& condition : *conditions) {
    if (condition.is_object()) condition.erase("lastHeartbeatTime");
  }
}

void trim_to_metadata(Json& object) {
  keep_only(object, {"apiVersion", "kind", "metadata"});
}

}  // namespace coxswain
