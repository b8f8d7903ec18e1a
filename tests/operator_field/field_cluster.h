// What a report from the field is told on: a cluster with the operator in it, either simulated, with a clock
// that runs by itself (simulated_field.h), or a real API server with the program coxswain-operator
// (tests/integration_field/server_field.h). The same text holds on both.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "operator/api/training_job.h"
#include "operator/client/api_client.h"

namespace coxswain::testing {

// The job is "j" wherever none is named, in a namespace of its own.
class FieldCluster {
 public:
  virtual ~FieldCluster() = default;

  virtual ApiClient& server() = 0;
  virtual std::string ns() const = 0;
  virtual bool is_simulated() const = 0;
  virtual TimePoint now() const = 0;

  // --- The operator
  virtual void restart_operator() = 0;  // it dies without a word; a fresh one remembers nothing
  virtual void operator_is_down_for(Duration time) = 0;
  // Requests since forget_calls(): all but get, list and watch, or those that create objects of a kind.
  virtual void forget_calls() = 0;
  virtual int writes() = 0;
  virtual int creates(const std::string& plural) = 0;

  // --- Time
  // False: not within an hour of simulated time, or minutes of real time.
  virtual bool until(const std::function<bool()>& holds) = 0;
  // What was not to happen would have happened: so much simulated time, a second or two of real time.
  virtual void let_pass(Duration simulated) = 0;

  // --- Scheduler and kubelets. By default they run whatever there is.
  virtual void end(const std::string& pod, int exit_code, const std::string& message = "") = 0;
  virtual void patch_pod_status(const std::string& pod, const Json& merge_patch) = 0;
  // For pods to come: their trainer waits for this reason. An empty one: no longer.
  virtual void hold_up(const std::string& pod, const std::string& reason, const std::string& message) = 0;
  virtual void make_unschedulable(const std::string& pod, bool is = true) = 0;
  // Its kubelet is silent, and the node controller says so; bring_back() confirms what was deleted meanwhile.
  virtual void lose_node(const std::string& node) = 0;
  virtual void bring_back(const std::string& node) = 0;
  // Pods that the namespace may have.
  virtual void set_quota(int pods) = 0;

  // --- What can be told of both
  virtual ApiResult<Json> submit(int nodes, const Json& spec_patch = Json::object(),
                                 const Json& metadata_patch = Json::object());
  // One whose part of a gang is kept for not much more than the least time.
  virtual ApiResult<Json> submit_releasing_early(int nodes, const Json& spec_patch = Json::object()) {
    return submit(nodes, spec_patch);
  }
  ApiResult<Json> patch(const Json& spec);
  bool runs(int64_t attempt = 0);  // until it does
  bool is_phase(const std::string& phase);
  bool until_phase(const std::string& phase);

  Json job();  // null: none
  TrainingJobStatus status();
  std::string phase() { return to_string(status().phase); }
  std::string said(const char* condition);
  std::string reason(const char* condition);
  bool has_event(const std::string& reason, const std::string& words = "");
  std::vector<Json> pods();
  Json pod(const std::string& name);  // null: none
  std::string node_of(const std::string& pod);
};

// A spec of the runtime's own, so that its exit codes mean something.
Json with_config(Json spec_patch = Json::object());

// --- Reports

struct FieldReport {
  const char* name;
  const char* file;
  int line;
  void (*tell)(FieldCluster& cluster);
};
// Those of this binary, each of which is a test.
const std::vector<FieldReport>& field_reports();
bool add_field_report(const FieldReport& report);
// How: each binary has its own.
::testing::Test* make_field_report_test(const FieldReport& report);

#define FIELD_REPORT(name)                                                      \
  static void name(::coxswain::testing::FieldCluster& cluster);                 \
  [[maybe_unused]] static const bool name##IsATest =                            \
      ::coxswain::testing::add_field_report({#name, __FILE__, __LINE__, name}); \
  static void name([[maybe_unused]] ::coxswain::testing::FieldCluster& cluster)

}  // namespace coxswain::testing
