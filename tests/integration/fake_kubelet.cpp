#include "tests/integration/fake_kubelet.h"

#include <algorithm>

#include "cli/process_node/pod_status.h"
#include "contract/contract.h"
#include "operator/api/parse.h"
#include "operator/client/clock.h"

namespace coxswain::testing {

namespace {

using coxswain::resources::kNodes;
using coxswain::resources::kPods;

// Init containers, then the others with the trainer last, as pod_status() wants them.
std::vector<ContainerRun> containers_of(const Json& pod) {
  std::vector<ContainerRun> runs;
  for (const char* list : {"initContainers", "containers"}) {
    for (const Json& container : pod["spec"].value(list, Json::array())) {
      ContainerRun run;
      run.name = container["name"];
      run.image = container.value("image", "");
      run.init = std::string(list) == "initContainers";
      runs.push_back(run);
    }
  }
  std::ranges::stable_partition(
      runs, [](const ContainerRun& run) { return run.init || run.name != contract::kTrainerContainer; });
  return runs;
}

Json status_of(const Json& pod, const std::vector<ContainerRun>& runs) {
  const TimePoint now = system_time();
  const auto began = parse_time(pod["status"].value("startTime", ""));
  return pod_status(runs, began.value_or(now));
}

Json node_condition(const std::string& status) {
  const bool ready = status == "True";
  return {{"type", "Ready"},
          {"status", status},
          {"reason", ready               ? "KubeletReady"
                     : status == "False" ? "KubeletNotReady"
                                         : "NodeStatusUnknown"},
          {"message", ready ? "kubelet is posting ready status" : "Kubelet stopped posting node status."},
          {"lastHeartbeatTime", format_time(system_time())},
          {"lastTransitionTime", format_time(system_time())}};
}

Json taints_for(const std::string& status) {
  if (status == "True") return nullptr;
  const std::string key = status == "False" ? "not-ready" : "unreachable";
  Json taints = Json::array();
  for (const char* effect : {"NoSchedule", "NoExecute"}) {
    taints.push_back({{"key", "node.kubernetes.io/" + key}, {"effect", effect}});
  }
  return taints;
}

}  // namespace

FakeKubelet::FakeKubelet(ControlPlane& plane, std::string ns)
    : FakeKubelet(
          plane.api(),
          [&plane](const std::string& in, const std::string& pod, const std::string& node) {
            return plane.bind_pod(in, pod, node);
          },
          std::move(ns)) {}

// --- Nodes

ApiResult<Json> FakeKubelet::add_node(const std::string& node) {
  const auto made = api_.create(
      kNodes, "", {{"metadata", {{"name", node}, {"labels", {{"kubernetes.io/hostname", node}}}}}}, {});
  if (!made && !made.error().already_exists()) return made;
  return set_node_ready(node, "True");
}

ApiResult<Json> FakeKubelet::set_node_ready(const std::string& node, const std::string& status) {
  // The API server gives a new node a taint of its own.
  auto object = api_.merge_patch(kNodes, "", node, {{"spec", {{"taints", taints_for(status)}}}}, {});
  if (!object) return object;
  (*object)["metadata"].erase("resourceVersion");
  const Json amounts = {{"cpu", "64"}, {"memory", "512Gi"}, {"pods", "1000"}, {"nvidia.com/gpu", "8"}};
  (*object)["status"].merge_patch({{"capacity", amounts},
                                   {"allocatable", amounts},
                                   {"conditions", Json::array({node_condition(status)})}});
  return api_.update_status(kNodes, "", *object, {});
}

void FakeKubelet::remove_node(const std::string& node) {
  api_.remove(kNodes, "", node, {});
}

// --- Pods

ApiResult<Json> FakeKubelet::write_status(const std::string& pod,
                                          const std::function<void(Json& pod)>& change) {
  auto object = api_.get(kPods, ns_, pod);
  if (!object) return object;
  (*object)["metadata"].erase("resourceVersion");
  change(*object);
  return api_.update_status(kPods, ns_, *object, {});
}

ApiResult<Json> FakeKubelet::bind(const std::string& pod, const std::string& node) {
  return bind_(ns_, pod, node);
}

ApiResult<Json> FakeKubelet::unschedulable(const std::string& pod, const std::string& message) {
  const Json condition = {{"type", "PodScheduled"},
                          {"status", "False"},
                          {"reason", "Unschedulable"},
                          {"message", message},
                          {"lastTransitionTime", format_time(system_time())}};
  return patch_status(pod, {{"phase", "Pending"}, {"conditions", Json::array({condition})}});
}

ApiResult<Json> FakeKubelet::run(const std::string& pod) {
  return write_status(pod, [](Json& object) {
    std::vector<ContainerRun> runs = containers_of(object);
    for (ContainerRun& run : runs) {
      run.started = system_time();
      if (!run.init) continue;
      run.finished = run.started;
      run.reason = "Completed";
    }
    object["status"] = status_of(object, runs);
  });
}

ApiResult<Json> FakeKubelet::bind_and_run(const std::string& pod, const std::string& node) {
  return bind(pod, node).and_then([&](const Json&) { return run(pod); });
}

ApiResult<Json> FakeKubelet::hold_up(const std::string& pod, const std::string& reason,
                                     const std::string& message) {
  return write_status(pod, [&](Json& object) {
    object["status"] = status_of(object, containers_of(object));
    object["status"]["containerStatuses"].back()["state"] = {
        {"waiting", {{"reason", reason}, {"message", message}}}};
  });
}

ApiResult<Json> FakeKubelet::end(const std::string& pod, int exit_code, const std::string& message,
                                 const std::string& reason) {
  return write_status(pod, [&](Json& object) {
    const auto began = parse_time(object["status"].value("startTime", ""));
    std::vector<ContainerRun> runs = containers_of(object);
    for (ContainerRun& run : runs) {
      run.finished = system_time();
      run.started = began.value_or(*run.finished);
      run.exit_code = run.init ? 0 : exit_code;
      run.reason = run.exit_code == 0 ? "Completed" : reason.empty() ? "Error" : reason;
    }
    runs.back().message = message;
    object["status"] = status_of(object, runs);
  });
}

ApiResult<Json> FakeKubelet::fail(const std::string& pod, const std::string& reason,
                                  const std::string& message) {
  return patch_status(pod, {{"phase", "Failed"}, {"reason", reason}, {"message", message}});
}

ApiResult<Json> FakeKubelet::patch_status(const std::string& pod, const Json& merge_patch) {
  return write_status(pod, [&](Json& object) { object["status"].merge_patch(merge_patch); });
}

ApiResult<Json> FakeKubelet::confirm_deletion(const std::string& pod, const std::string& uid) {
  DeleteOptions now;
  now.grace_period_seconds = 0;
  if (!uid.empty()) now.uid = uid;
  return api_.remove(kPods, ns_, pod, now);
}

}  // namespace coxswain::testing
