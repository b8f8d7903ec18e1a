#include "tests/integration_field/server_field.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "operator/client/clock.h"
#include "operator/client/metadata.h"
#include "operator/reconcile/refusal.h"

namespace coxswain::testing {

namespace {

using coxswain::resources::kTrainingJobs;
using namespace std::chrono_literals;

const Resource kResourceQuotas{"", "v1", "resourcequotas", "ResourceQuota"};

constexpr char kUserAgent[] = "coxswain-operator/";
constexpr auto kBound = 150s;          // for whatever is to happen, on a machine that is busy
constexpr auto kPause = 100ms;         // between looks
constexpr auto kObservation = 2500ms;  // for what is not to happen
// Of how long a part of a gang is kept, see partial_gang_hold().
constexpr auto kEarly = 66s;

std::unique_ptr<ControlPlane>& shared() {
  static std::unique_ptr<ControlPlane> plane;
  return plane;
}

class StopsIt : public ::testing::Environment {
 public:
  void TearDown() override { shared().reset(); }
};
const ::testing::Environment* const kStopsIt = ::testing::AddGlobalTestEnvironment(new StopsIt);

}  // namespace

ControlPlane& field_plane() {
  static std::mutex mutex;
  static std::exception_ptr failed;  // once is enough
  std::lock_guard lock(mutex);
  if (failed) std::rethrow_exception(failed);
  if (shared() != nullptr) return *shared();
  try {
    ControlPlaneOptions options = options_of_environment();
    options.audit_log = true;
    options.api_server_flags = {"--enable-admission-plugins=OwnerReferencesPermissionEnforcement"};
    shared() = std::make_unique<ControlPlane>(std::move(options));
  } catch (...) {
    failed = std::current_exception();
    throw;
  }
  return *shared();
}

ServerField::ServerField(ControlPlane& plane)
    : plane_(plane), ns_(plane.new_namespace("field")), audit_(plane.audit_log(), kUserAgent) {
  nodes_ = std::make_unique<FakeNodes>(
      plane, FakeNodesOptions{.namespace_name = ns_,
                              .node_prefix = ns_ + "-",
                              .fate = [this](const Json& pod) { return fate_of(pod); }});
  replace_operator({});
}

ServerField::~ServerField() {
  operator_->kill();
  plane_.delete_namespace(ns_);
}

TimePoint ServerField::now() const {
  return system_time();
}

// --- The operator

void ServerField::replace_operator(OperatorProcessOptions options) {
  if (options.kubeconfig.empty()) options.kubeconfig = plane_.kubeconfig();
  options.flags.push_back("--namespaces=" + ns_);
  operator_ = std::make_unique<OperatorProcess>(std::move(options));
  start_operator();
}

void ServerField::start_operator() {
  operator_->start_and_wait();
}

void ServerField::restart_operator() {
  operator_->kill();
  start_operator();
}

void ServerField::operator_is_down_for(Duration time) {
  EXPECT_EQ(operator_->terminate(), 0) << operator_->log();
  std::this_thread::sleep_for(time);
  start_operator();
}

int ServerField::writes() {
  const auto all = calls();
  return static_cast<int>(
      std::ranges::count_if(all, [](const AuditedCall& call) { return call.is_write(); }));
}

int ServerField::creates(const std::string& plural) {
  const auto all = calls();
  return static_cast<int>(std::ranges::count_if(
      all, [&](const AuditedCall& call) { return call.verb == "create" && call.resource == plural; }));
}

// --- Time

bool ServerField::until(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + kBound;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

void ServerField::let_pass(Duration simulated) {
  std::this_thread::sleep_for(std::min<Duration>(simulated, kObservation));
}

// --- Scheduler and kubelets

Fate ServerField::fate_of(const Json& pod) {
  std::lock_guard lock(mutex_);
  const std::string name = metadata::name(pod);
  Fate fate;
  if (const auto held = held_up_.find(name); held != held_up_.end()) fate = held->second;
  if (unschedulable_.contains(name)) {
    fate.unschedulable = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.";
  }
  return fate;
}

void ServerField::change(const std::function<void()>& fates) {
  {
    std::lock_guard lock(mutex_);
    fates();
  }
  nodes_->set_fate([this](const Json& pod) { return fate_of(pod); });
}

void ServerField::end(const std::string& pod, int exit_code, const std::string& message) {
  const auto ended = nodes_->kubelet(ns_).end(pod, exit_code, message);
  EXPECT_TRUE(ended) << pod << ": " << ended.error().message;
}

void ServerField::patch_pod_status(const std::string& pod, const Json& merge_patch) {
  const auto patched = nodes_->kubelet(ns_).patch_status(pod, merge_patch);
  EXPECT_TRUE(patched) << pod << ": " << patched.error().message;
}

void ServerField::hold_up(const std::string& pod, const std::string& reason, const std::string& message) {
  change([&] {
    held_up_.erase(pod);
    if (reason.empty()) return;
    held_up_[pod].waits = reason;
    held_up_[pod].waits_message = message;
  });
}

void ServerField::make_unschedulable(const std::string& pod, bool is) {
  change([&] {
    unschedulable_.erase(pod);
    if (is) unschedulable_.insert(pod);
  });
}

void ServerField::set_quota(int pods) {
  const Json spec = {{"hard", {{"pods", std::to_string(pods)}}}};
  auto stored =
      server().create(kResourceQuotas, ns_, {{"metadata", {{"name", "quota"}}}, {"spec", spec}}, {});
  if (!stored) stored = server().merge_patch(kResourceQuotas, ns_, "quota", {{"spec", spec}}, {});
  ASSERT_TRUE(stored) << stored.error().message;
  EXPECT_TRUE(until([&] {
    const auto quota = server().get(kResourceQuotas, ns_, "quota");
    return quota && quota->value("/status/hard/pods"_json_pointer, "") == std::to_string(pods);
  }));
}

ApiResult<Json> ServerField::submit_releasing_early(int nodes, const Json& spec_patch) {
  operator_->kill();
  for (;;) {
    auto created = submit(nodes, spec_patch);
    if (!created || partial_gang_hold(metadata::uid(*created), 0, Settings()) <= kEarly) {
      start_operator();
      return created;
    }
    if (const auto removed = server().remove(kTrainingJobs, ns_, "j", {}); !removed) return removed;
  }
}

// --- Of a real one only

Finished ServerField::kubectl(std::vector<std::string> arguments, const std::string& input) {
  arguments.push_back("--namespace=" + ns_);
  return plane_.kubectl(std::move(arguments), input);
}

std::string ServerField::describe() {
  std::string text = "--- status of the job\n" + job().value("status", Json()).dump(1) + "\n--- pods\n";
  for (const Json& pod : pods()) {
    text +=
        metadata::name(pod) + " " + pod["status"].value("phase", "") + " " + pod["metadata"].dump() + "\n";
  }
  return text + "--- the operator's log\n" + tail(operator_->log_file(), 30);
}

}  // namespace coxswain::testing
