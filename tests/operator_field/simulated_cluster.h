// A cluster without machines: an API server in memory, a scheduler, kubelets, the node controller and a
// quota, all moved by a clock that the test turns; and the real controller against it, through an API that
// fails when the test says so.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/client/faulty_api.h"
#include "operator/client/memory_api.h"
#include "operator/controller/controller.h"

namespace coxswain::testing {

inline constexpr char kNs[] = "ns";

// What the agents of the pods answer, by the pod's name.
class FakeAgents : public ProgressReader {
 public:
  std::optional<Json> read(const Json& pod) override;
  // One rank to a pod.
  void at(const std::string& pod, int64_t attempt, int64_t rank, const std::string& phase,
          std::optional<int64_t> step);

  std::map<std::string, Json> answers;
  int reads = 0;
};

class SimulatedCluster {
 public:
  explicit SimulatedCluster(int nodes = 3);

  // --- The operator
  void restart_operator();  // nothing is remembered
  Controller& controller() { return *controller_; }

  // --- Time. Controller, scheduler and kubelets in turn until nothing is due; from one moment at which
  // something is due to the next.
  TimePoint settle();  // the next such moment
  void pass_time(Duration time);
  bool until(const std::function<bool()>& holds, Duration limit = std::chrono::hours(1));

  // --- Jobs. A job of one's own program unless `spec_patch` says otherwise.
  ApiResult<Json> submit(const std::string& name, int nodes, Json spec_patch = Json::object(),
                         Json metadata_patch = Json::object());
  TrainingJobStatus status(const std::string& job = "j");
  std::string phase(const std::string& job = "j") { return to_string(status(job).phase); }
  std::string said(const char* condition, const std::string& job = "j");
  std::string reason(const char* condition, const std::string& job = "j");
  bool has_event(const std::string& reason, const std::string& words = "");
  std::vector<Json> pods(const std::string& job = "j");
  Json pod(const std::string& name);
  std::string node_of(const std::string& pod);

  // --- What happens out there
  void end(const std::string& pod, int exit_code, const std::string& message = "");
  void end_all(const std::string& job, int exit_code);
  void set_pod_status(const std::string& pod, const Json& merge_patch);
  void lose_node(const std::string& node);   // its kubelet is silent; Ready is Unknown 40 s later
  void bring_back(const std::string& node);  // and confirms what was deleted meanwhile
  // The kubelet cannot start this container: `waiting` of the trainer's state. An empty reason: it can again.
  void hold_up(const std::string& pod, const std::string& reason, const std::string& message);
  // Pods that the namespace may have; none: as many as one likes.
  void set_quota(std::optional<int> pods) { quota_ = pods; }

  int count(Verb verb, const std::string& plural = "");

  TimePoint now = TimePoint(std::chrono::hours(1000));
  Clock clock = [this] { return now; };
  MemoryApi api{clock};
  FaultyApi::Script script;  // asked before the quota
  std::unique_ptr<FaultyApi> faulty;
  FakeAgents agents;
  std::set<std::string> unschedulable;  // pods that the scheduler finds no node for

 private:
  struct Node {
    bool lost = false;
    TimePoint since{};
    bool told = true;  // the node object says so
  };

  void advance(TimePoint end);
  std::optional<ApiFault> admission(const ApiCall& call);
  void step_nodes();
  void step_pods();
  void schedule(const Json& pod);
  void start(Json pod);
  void write_node(const std::string& name, const Node& node);

  std::unique_ptr<Controller> controller_;
  std::map<std::string, Node> nodes_;
  std::map<std::string, Json> held_up_;
  std::optional<int> quota_;
  int submitted_ = 0;
  int changes_ = 0;  // by scheduler, kubelets and node controller
};

}  // namespace coxswain::testing
