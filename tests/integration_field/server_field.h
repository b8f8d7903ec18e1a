// Field reports on a real API server, with the program coxswain-operator and nodes without machines.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/integration/control_plane.h"
#include "tests/integration/fake_nodes.h"
#include "tests/integration/operator_process.h"
#include "tests/integration_field/audit.h"
#include "tests/operator_field/field_cluster.h"

namespace coxswain::testing {

// The control plane of this binary, with an audit log and garbage collection; started by whoever asks first,
// stopped after the last test.
ControlPlane& field_plane();

// One namespace with an operator of its own and three nodes of its own. Used by one thread.
class ServerField : public FieldCluster {
 public:
  explicit ServerField(ControlPlane& plane);
  ~ServerField() override;

  ApiClient& server() override { return plane_.api(); }
  std::string ns() const override { return ns_; }
  bool is_simulated() const override { return false; }
  TimePoint now() const override;

  void restart_operator() override;
  void operator_is_down_for(Duration time) override;
  void forget_calls() override { audit_.forget(); }
  int writes() override;
  int creates(const std::string& plural) override;

  bool until(const std::function<bool()>& holds) override;
  void let_pass(Duration simulated) override;

  void end(const std::string& pod, int exit_code, const std::string& message = "") override;
  void patch_pod_status(const std::string& pod, const Json& merge_patch) override;
  void hold_up(const std::string& pod, const std::string& reason, const std::string& message) override;
  void make_unschedulable(const std::string& pod, bool is = true) override;
  void lose_node(const std::string& node) override { nodes_->lose(node); }
  void bring_back(const std::string& node) override { nodes_->bring_back(node); }
  void set_quota(int pods) override;
  ApiResult<Json> submit_releasing_early(int nodes, const Json& spec_patch = Json::object()) override;

  // --- Of a real one only
  ControlPlane& plane() { return plane_; }
  OperatorProcess& the_operator() { return *operator_; }
  // Returns when its caches are filled.
  void start_operator();
  void replace_operator(OperatorProcessOptions options);
  FakeNodes& nodes() { return *nodes_; }
  std::vector<AuditedCall> calls() const { return audit_.calls(ns_); }
  Finished kubectl(std::vector<std::string> arguments, const std::string& input = "");
  // What there is to see of it, for the message of a failed test.
  std::string describe();

 private:
  Fate fate_of(const Json& pod);
  void change(const std::function<void()>& fates);

  ControlPlane& plane_;
  const std::string ns_;
  AuditLog audit_;
  std::mutex mutex_;  // for the next two, which nodes read
  std::map<std::string, Fate> held_up_;
  std::set<std::string> unschedulable_;
  std::unique_ptr<FakeNodes> nodes_;
  std::unique_ptr<OperatorProcess> operator_;
};

// As FIELD_REPORT, for what only a real API server does.
#define SERVER_REPORT(name)                                                                 \
  static void name(::coxswain::testing::ServerField& cluster);                              \
  [[maybe_unused]] static const bool name##IsATest = ::coxswain::testing::add_field_report( \
      {#name, __FILE__, __LINE__, [](::coxswain::testing::FieldCluster& cluster) {          \
         name(static_cast<::coxswain::testing::ServerField&>(cluster));                     \
       }});                                                                                 \
  static void name(::coxswain::testing::ServerField& cluster)

}  // namespace coxswain::testing
