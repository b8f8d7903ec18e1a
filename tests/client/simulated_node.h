// Nodes without programs: pods start at once and end when a test says so.
#pragma once

#include <string>

#include "cli/process_node/pod_status.h"
#include "operator/client/memory_api.h"

namespace coxswain {

class SimulatedNode {
 public:
  SimulatedNode(MemoryApi& api, Clock clock) : api_(api), clock_(std::move(clock)) {}

  // New pods run; pods that are to go have gone.
  void step() {
    const auto pods = api_.list(resources::kPods, "", {});
    for (const Json& pod : pods->items) {
      const std::string ns = pod["metadata"]["namespace"];
      const std::string name = pod["metadata"]["name"];
      if (pod["metadata"].contains("deletionTimestamp")) {
        if (!lost) api_.remove(resources::kPods, ns, name, {std::nullopt, std::nullopt, 0, false});
      } else if (pod["status"]["phase"] == "Pending" && !pod["spec"].contains("nodeName")) {
        write(*api_.bind_pod(ns, name, "node"), std::nullopt, "");
      }
    }
  }

  void end(const std::string& ns, const std::string& name, int exit_code, const std::string& message = "") {
    write(*api_.get(resources::kPods, ns, name), exit_code, message);
  }

  bool lost = false;  // nobody confirms a deletion any more

 private:
  void write(Json pod, std::optional<int> exit_code, const std::string& message) {
    ContainerRun run{"trainer", "image", false, clock_(), std::nullopt, 0, "", ""};
    if (exit_code) {
      run.finished = clock_();
      run.exit_code = *exit_code;
      run.reason = *exit_code == 0 ? "Completed" : "Error";
      run.message = message;
    }
    pod["status"] = pod_status({run}, clock_());
    api_.update_status(resources::kPods, pod["metadata"]["namespace"], pod, {});
  }

  MemoryApi& api_;
  Clock clock_;
};

}  // namespace coxswain
