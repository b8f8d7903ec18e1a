// A kubelet for this machine: runs the pods of a MemoryApi as processes and reports about them as a kubelet
// does. A pod is its init containers, one after another, and then its container `trainer`; other containers
// are not run.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/process_node/container_environment.h"
#include "cli/process_node/log_pump.h"
#include "cli/process_node/node_options.h"
#include "cli/process_node/supervisor.h"
#include "contract/result.h"
#include "operator/client/clock.h"
#include "operator/client/informer.h"
#include "operator/client/memory_api.h"
#include "operator/controller/progress_reader.h"

namespace coxswain {

// Used by one thread, which must be the program's only one when step() is called (it forks).
class ProcessNode {
 public:
  ProcessNode(MemoryApi& api, Clock clock, NodeOptions options, LineSink sink);
  // Kills what still runs, and waits for it.
  ~ProcessNode();

  // What would keep `pod` from ever running here, before anything is made: a volume, the program, a container
  // without a command.
  static Result<void> check(const Json& pod, const NodeOptions& options);

  // Takes in what has changed (pods, ended programs, output) and acts on it; never waits.
  void step();

  // Pods with a program that still runs.
  bool busy() const;
  // The descriptors to poll(2) for output.
  std::vector<int> output_fds() const;
  // Ends all programs at once; pods whose deletion was asked for are then gone.
  void kill_all();
  // Where the agent of that pod (by UID) listens on 127.0.0.1.
  std::optional<int> agent_port(const std::string& pod_uid) const;

 private:
  struct Run;  // a pod that was started here

  void adopt_new_pods();
  void start(const Json& pod);
  void start_container(Run& run);
  Result<Supervised> launch(Run& run, const Json& container);
  void look_after(Run& run);
  void reap(Run& run);
  void end_container(Run& run, int exit_code, const std::string& reason, const std::string& message);
  void write_status(Run& run);
  void confirm_deletion(const Json& pod);
  Environment replaced_values(const Run& run);
  Json config_map(const std::string& ns, const std::string& name);

  MemoryApi& api_;
  const Clock clock_;
  const NodeOptions options_;
  const LineSink sink_;
  Informer pods_;
  std::map<std::string, std::unique_ptr<Run>> runs_;         // by pod UID
  std::map<std::pair<std::string, int>, int> master_ports_;  // by job UID and attempt
};

// GET /progress of agents on this machine.
class LocalProgressReader : public ProgressReader {
 public:
  explicit LocalProgressReader(const ProcessNode& node) : node_(node) {}
  std::optional<Json> read(const Json& pod) override;

 private:
  const ProcessNode& node_;
};

}  // namespace coxswain
