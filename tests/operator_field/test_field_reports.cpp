// Reports that take a clock, an API or nodes that obey: those that hold on a real cluster too are in
// reports_*.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/parse.h"
#include "tests/client/objects.h"
#include "tests/operator_field/field_cluster.h"
#include "tests/operator_field/simulated_cluster.h"

namespace coxswain::testing {
namespace {

using namespace resources;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

class SimulatedReport : public ::testing::Test {
 protected:
  bool running(int64_t attempt = 0) {
    return cluster.phase() == "Running" && cluster.status().attempt == attempt;
  }
  void submit(int nodes, const Json& spec = Json::object(), const Json& metadata = Json::object()) {
    const auto created = cluster.submit("j", nodes, spec, metadata);
    ASSERT_TRUE(created) << created.error().message;
    cluster.settle();
  }
  void patch(const Json& spec) {
    const auto patched = cluster.api.merge_patch(kTrainingJobs, kNs, "j", {{"spec", spec}}, {});
    ASSERT_TRUE(patched) << patched.error().message;
  }
  SimulatedCluster cluster;
};

TEST_F(SimulatedReport, ATemplateThatTheServerRejectsWith422FailsTheJobWithItsMessageAndIsNotRetried) {
  cluster.script = [](const ApiCall& call) -> std::optional<ApiFault> {
    if (call.verb != Verb::kCreate || call.plural != "pods") return std::nullopt;
    return ApiFault{{422, "Invalid", "spec.volumes[0].name: Required value", std::nullopt}, false};
  };
  submit(2);
  EXPECT_EQ(cluster.phase(), "Failed");
  EXPECT_THAT(cluster.said(kConditionStalled), HasSubstr("spec.volumes[0].name"));
  cluster.faulty->forget_calls();
  cluster.pass_time(1h);
  EXPECT_EQ(cluster.count(Verb::kCreate), 0);
}

TEST_F(SimulatedReport, TheOperatorDiesBetweenDeletingFailedPodsAndCountingTheFailure) {
  for (int writes = 0; writes < 12; ++writes) {
    SCOPED_TRACE("dies after " + std::to_string(writes) + " writes");
    cluster.restart_operator();
    submit(3);
    ASSERT_TRUE(cluster.until([&] { return running(); }));
    cluster.faulty->die_after_writes(writes);
    cluster.end("j-2", 9, "the disk is on fire");
    cluster.pass_time(5s);
    cluster.restart_operator();
    ASSERT_TRUE(cluster.until([&] { return running(1); }));
    EXPECT_EQ(cluster.status().restarts.counted, 1);
    EXPECT_THAT(cluster.status().last_failure->message, HasSubstr("the disk is on fire"));
    ASSERT_TRUE(cluster.api.remove(kTrainingJobs, kNs, "j", {}));
    cluster.settle();
  }
}

TEST_F(SimulatedReport, WhenNoNodeIsReadyNoGangIsTornDown) {
  submit(2);
  for (const char* node : {"node-0", "node-1", "node-2"}) cluster.lose_node(node);
  cluster.pass_time(30min);
  EXPECT_EQ(cluster.status().attempt, 0) << "the control plane was cut off, the pods run";
  for (const char* node : {"node-0", "node-1", "node-2"}) cluster.bring_back(node);
  cluster.pass_time(10min);
  EXPECT_TRUE(running());
}

// The first node that is back must not make the others lost since half an hour ago.
TEST_F(SimulatedReport, WhenNodesComeBackOneByOneNoGangIsTornDown) {
  submit(3);
  for (const char* node : {"node-0", "node-1", "node-2"}) cluster.lose_node(node);
  cluster.pass_time(30min);
  for (const char* node : {"node-0", "node-1", "node-2"}) {
    cluster.bring_back(node);
    cluster.pass_time(5s);
  }
  cluster.pass_time(10min);
  EXPECT_TRUE(running());
  EXPECT_EQ(cluster.status().restarts, RestartsStatus());
}

TEST_F(SimulatedReport, ANodeThatStaysAwayWhenTheOthersAreBackIsLost) {
  submit(3);
  for (const char* node : {"node-0", "node-1", "node-2"}) cluster.lose_node(node);
  cluster.pass_time(30min);
  cluster.bring_back("node-0");
  cluster.bring_back("node-1");
  const TimePoint back = cluster.now;
  ASSERT_TRUE(cluster.until([&] { return cluster.status().restarts.disruptions == 1; }, 30min));
  EXPECT_GE(cluster.now - back, 30s);
  EXPECT_EQ(cluster.status().last_failure->cause, "NodeLost");
  EXPECT_TRUE(cluster.until([&] { return running(1); }));
}

TEST_F(SimulatedReport, TheTimeToLiveDeletesNotASecondEarly) {
  submit(1, {{"runPolicy", {{"ttlSecondsAfterFinished", 60}}}});
  cluster.end_all("j", 0);
  cluster.pass_time(59s);
  EXPECT_TRUE(cluster.api.get(kTrainingJobs, kNs, "j"));
  cluster.pass_time(2s);
  EXPECT_FALSE(cluster.api.get(kTrainingJobs, kNs, "j"));
  EXPECT_TRUE(cluster.pods().empty());
}

TEST_F(SimulatedReport, AConflictOfStatusWritesIsDecidedOnFreshStateAndNeverLeavesAStaleRunning) {
  submit(2);
  bool once = true;
  cluster.script = [&](const ApiCall& call) -> std::optional<ApiFault> {
    if (call.verb != Verb::kUpdateStatus || !std::exchange(once, false)) return std::nullopt;
    patch({{"suspend", true}});
    return std::nullopt;  // the conflict itself is the API's
  };
  cluster.end("j-1", 1);
  cluster.pass_time(30s);
  EXPECT_FALSE(once);
  EXPECT_EQ(cluster.phase(), "Suspended");
  EXPECT_FALSE(has_condition(cluster.status(), kConditionRunning));
}

TEST_F(SimulatedReport, AWatchThatCloses410OrNotIsResumedWithoutABusyLoopAndMissesNothing) {
  submit(2);
  for (const bool expired : {false, true}) {
    cluster.faulty->forget_calls();
    if (expired) cluster.api.compact();
    cluster.api.end_watches(expired);
    cluster.pass_time(1min);
    EXPECT_LE(cluster.faulty->calls().size(), 20U);
  }
  cluster.end("j-1", 1);
  EXPECT_TRUE(cluster.until([&] { return running(1); }));
}

// 262144 bytes hold the annotation that client-side `kubectl apply` writes the whole object into.
TEST_F(SimulatedReport, TheCrdAppliesClientSideWithoutAnAnnotationThatIsTooLong) {
  const auto documents = load_yaml_file("crds/trainingjob.yaml");
  ASSERT_TRUE(documents);
  EXPECT_LT(documents->front().dump().size(), 262144U / 2);
}

}  // namespace
}  // namespace coxswain::testing
