// What scheduler, kubelets and the node controller write, by a test's hand; fake_nodes.h does it by itself.
#pragma once

#include <functional>
#include <string>

#include "operator/client/api_client.h"
#include "tests/integration/control_plane.h"

namespace coxswain::testing {

// Gives a pod its node: MemoryApi::bind_pod or ControlPlane::bind_pod.
using BindPod =
    std::function<ApiResult<Json>(const std::string& ns, const std::string& pod, const std::string& node)>;

// Pods are those of one namespace. Every call is one or two requests; nothing is remembered, so any thread
// may call. Statuses are written over whatever is there, as nobody else writes them.
class FakeKubelet {
 public:
  FakeKubelet(ApiClient& api, BindPod bind, std::string ns)
      : api_(api), bind_(std::move(bind)), ns_(std::move(ns)) {}
  FakeKubelet(ControlPlane& plane, std::string ns);

  // --- Nodes
  ApiResult<Json> add_node(const std::string& node);  // Ready; one that exists is made Ready
  // "True", "False" or "Unknown" (its kubelet is silent); with the taints that the node controller adds.
  ApiResult<Json> set_node_ready(const std::string& node, const std::string& status);
  void remove_node(const std::string& node);

  // --- The scheduler
  ApiResult<Json> bind(const std::string& pod, const std::string& node);
  ApiResult<Json> unschedulable(const std::string& pod, const std::string& message);

  // --- The kubelet
  // Every container runs and is ready; init containers are done.
  ApiResult<Json> run(const std::string& pod);
  ApiResult<Json> bind_and_run(const std::string& pod, const std::string& node);
  // The trainer can't start: `reason` as a kubelet gives it (ImagePullBackOff, CreateContainerConfigError …).
  ApiResult<Json> hold_up(const std::string& pod, const std::string& reason, const std::string& message);
  // Every container ends with this code: Succeeded, or Failed. `reason` "": Completed or Error.
  ApiResult<Json> end(const std::string& pod, int exit_code, const std::string& message = "",
                      const std::string& reason = "");
  // Failed as a whole, such as by Evicted, Preempting, NodeAffinity, Terminated.
  ApiResult<Json> fail(const std::string& pod, const std::string& reason, const std::string& message);
  // Anything else.
  ApiResult<Json> patch_status(const std::string& pod, const Json& merge_patch);
  // A pod that is being deleted is gone; `uid` "": whichever has the name.
  ApiResult<Json> confirm_deletion(const std::string& pod, const std::string& uid = "");

 private:
  ApiResult<Json> write_status(const std::string& pod, const std::function<void(Json& pod)>& change);

  ApiClient& api_;
  const BindPod bind_;
  const std::string ns_;
};

}  // namespace coxswain::testing
