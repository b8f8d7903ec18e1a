// Field reports on the simulated cluster.
#pragma once

#include "tests/operator_field/field_cluster.h"
#include "tests/operator_field/simulated_cluster.h"

namespace coxswain::testing {

class SimulatedField : public FieldCluster {
 public:
  ApiClient& server() override { return cluster_.api; }
  std::string ns() const override { return kNs; }
  bool is_simulated() const override { return true; }
  TimePoint now() const override { return cluster_.now; }

  void restart_operator() override { cluster_.restart_operator(); }
  void operator_is_down_for(Duration time) override;
  void forget_calls() override { cluster_.faulty->forget_calls(); }
  int writes() override;
  int creates(const std::string& plural) override { return cluster_.count(Verb::kCreate, plural); }

  bool until(const std::function<bool()>& holds) override { return cluster_.until(holds); }
  void let_pass(Duration simulated) override { cluster_.pass_time(simulated); }

  void end(const std::string& pod, int exit_code, const std::string& message) override {
    cluster_.end(pod, exit_code, message);
  }
  void patch_pod_status(const std::string& pod, const Json& merge_patch) override {
    cluster_.set_pod_status(pod, merge_patch);
  }
  void hold_up(const std::string& pod, const std::string& reason, const std::string& message) override {
    cluster_.hold_up(pod, reason, message);
  }
  void make_unschedulable(const std::string& pod, bool is) override;
  void lose_node(const std::string& node) override { cluster_.lose_node(node); }
  void bring_back(const std::string& node) override { cluster_.bring_back(node); }
  void set_quota(int pods) override { cluster_.set_quota(pods); }

  ApiResult<Json> submit(int nodes, const Json& spec_patch, const Json& metadata_patch) override {
    return cluster_.submit("j", nodes, spec_patch, metadata_patch);
  }

 private:
  SimulatedCluster cluster_;
};

}  // namespace coxswain::testing
