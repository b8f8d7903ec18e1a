#include "operator/client/trim.h"

#include <initializer_list>
#include <iterator>

namespace coxswain {

namespace {

constexpr char kOwnPrefix[] = "training.coxswain.dev/";  // of our labels and annotations

void keep_only(Json& object, std::initializer_list<const char*> fields) {
  if (!object.is_object()) return;
  Json kept = Json::object();
  for (const char* field : fields) {
    if (const auto found = object.find(field); found != object.end()) kept[field] = std::move(*found);
  }
  object = std::move(kept);
}

void keep_only_of_each(Json& object, const char* list, std::initializer_list<const char*> fields) {
  const auto items = object.is_object() ? object.find(list) : object.end();
  if (items == object.end() || !items->is_array()) return;
  for (Json& item : *items) keep_only(item, fields);
}

// The member, or a null that may be written to without effect.
Json& member(Json& object, const char* field) {
  static thread_local Json none;
  none = nullptr;
  const auto found = object.is_object() ? object.find(field) : object.end();
  return found == object.end() ? none : *found;
}

// Those of which something depends.
void keep_read_conditions(Json& status) {
  Json& conditions = member(status, "conditions");
  if (!conditions.is_array()) return;
  Json kept = Json::array();
  for (Json& condition : conditions) {
    const Json& type = member(condition, "type");
    if (type == "Ready" || type == "PodScheduled" || type == "PodReadyToStartContainers" ||
        type == "DisruptionTarget") {
      kept.push_back(std::move(condition));
    }
  }
  conditions = std::move(kept);
}

// Keeps the members that begin with the project's prefix.
void keep_own(Json& object) {
  if (!object.is_object()) return;
  for (auto it = object.begin(); it != object.end();) {
    it = it.key().starts_with(kOwnPrefix) ? std::next(it) : object.erase(it);
  }
}

void trim_metadata(Json& metadata) {
  keep_only(metadata,
            {"name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp",
             "deletionGracePeriodSeconds", "finalizers", "labels", "annotations", "ownerReferences"});
  keep_own(member(metadata, "labels"));
  keep_own(member(metadata, "annotations"));
  keep_only_of_each(metadata, "ownerReferences", {"kind", "name", "uid", "controller"});
}

}  // namespace

void trim_pod(Json& pod) {
  trim_metadata(member(pod, "metadata"));
  Json& spec = member(pod, "spec");
  keep_only(spec, {"nodeName", "hostNetwork", "containers"});
  keep_only_of_each(spec, "containers", {"name", "ports"});
  Json& status = member(pod, "status");
  keep_only(status, {"phase", "reason", "message", "conditions", "containerStatuses", "initContainerStatuses",
                     "podIP", "hostIP", "startTime"});
  keep_read_conditions(status);
  keep_only_of_each(status, "conditions", {"type", "status", "reason", "message", "lastTransitionTime"});
  keep_only_of_each(status, "containerStatuses", {"name", "state", "started", "ready"});
  keep_only_of_each(status, "initContainerStatuses", {"name", "state", "started", "ready"});
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
  trim_metadata(member(object, "metadata"));
}

}  // namespace coxswain
