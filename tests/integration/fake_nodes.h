// Nodes without machines: threads that schedule pods and run them as a scheduler and kubelets would, by what
// the API server shows. What becomes of each pod is the test's to say.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "operator/client/informer.h"
#include "operator/controller/work_queue.h"
#include "tests/integration/fake_kubelet.h"

namespace coxswain::testing {

// What becomes of a pod; by default it runs until FakeKubelet::end() or its deletion.
struct Fate {
  std::string unschedulable{};  // the scheduler's sentence; "": it gets a node
  std::string waits{};          // a waiting reason of the trainer, which then doesn't start
  std::string waits_message{};
  std::optional<std::chrono::milliseconds> runs_for{};  // then it ends with:
  int exit_code = 0;
  std::string message{};  // of its termination
  // When asked to stop it takes so long; then it writes this exit code first, if there is one.
  std::chrono::milliseconds stops_after{0};
  std::optional<int> stop_exit_code{};
};

struct FakeNodesOptions {
  std::string namespace_name{};  // "": all
  std::string label_selector{};
  int nodes = 3;  // "fake-node-0" …; Node objects that are made here and removed with it
  int workers = 2;
  // Asked whenever a pod is looked at, from any worker: must be safe for that, quick, and give the same
  // answer for a pod as long as the test means the same.
  std::function<Fate(const Json& pod)> fate = [](const Json&) { return Fate{}; };
};

// Runs from construction to destruction, over whatever becomes of the API server meanwhile. Every call is
// safe from any thread. Lost nodes' pods stay as they are, and nobody confirms their deletion.
class FakeNodes {
 public:
  FakeNodes(ControlPlane& plane, FakeNodesOptions options);
  FakeNodes(ApiClient& api, BindPod bind, FakeNodesOptions options);
  ~FakeNodes();

  // Takes effect on all pods that have not ended.
  void set_fate(std::function<Fate(const Json& pod)> fate);
  // Its kubelet is silent, and the node controller has seen it: Ready is Unknown.
  void lose(const std::string& node);
  void bring_back(const std::string& node);
  // A node's kubelet is silent and nobody has seen it yet.
  void silence(const std::string& node);

  std::vector<std::string> nodes() const { return nodes_; }
  FakeKubelet kubelet(const std::string& ns) const { return {api_, bind_, ns}; }

 private:
  using Key = WorkQueue::Key;

  void work();
  // When to look again; none: when it changes. An error: soon again.
  ApiResult<std::optional<TimePoint>> handle(const Key& key);
  ApiResult<std::optional<TimePoint>> schedule(const Key& key, const Json& pod, const Fate& fate);
  ApiResult<std::optional<TimePoint>> start(const Key& key, const Json& pod, const Fate& fate);
  ApiResult<std::optional<TimePoint>> run_on(const Key& key, const Json& pod, const Fate& fate);
  ApiResult<std::optional<TimePoint>> stop(const Key& key, const Json& pod, const Fate& fate);
  // The time from which this one began to be waited for, first asked now.
  TimePoint since(const std::string& uid, const std::string& what);
  std::string next_node();
  void look_at_all();

  ApiClient& api_;
  const BindPod bind_;
  const FakeNodesOptions options_;
  std::vector<std::string> nodes_;
  std::mutex mutex_;
  std::function<Fate(const Json& pod)> fate_;
  std::set<std::string> silent_;
  std::map<std::string, TimePoint> since_;  // by uid and what
  size_t turn_ = 0;
  WorkQueue queue_;
  std::unique_ptr<Informer> pods_;
  std::vector<std::jthread> threads_;  // last: they use the rest
};

}  // namespace coxswain::testing
