// From a new job to running pods, and what can keep it from that.
#include <gtest/gtest.h>

#include "tests/operator_core/harness.h"

namespace coxswain::testing {
namespace {

using namespace std::chrono_literals;

TEST(Start, ANewJobGetsServiceConfigMapAndPods) {
  World world("{nodes: 3}");
  world.settle();
  EXPECT_EQ(world.names(), "j-0@0 j-1@0 j-2@0");
  EXPECT_TRUE(world.has_service);
  EXPECT_EQ(world.config_maps, std::set<int64_t>{0});
  EXPECT_EQ(world.phase(), "Starting");
  EXPECT_TRUE(world.is(kConditionReconciling));
  EXPECT_FALSE(world.is(kConditionReady));
  EXPECT_EQ(world.job.status.start_time, world.now);
  EXPECT_EQ(world.job.status.observed_generation, 1);
}

TEST(Start, StatusComesBeforeTheFirstPod) {
  World world;
  world.apply(world.plan(), 1);
  EXPECT_TRUE(world.job.status.start_time);
  EXPECT_EQ(world.names(), "");
}

TEST(Start, ItRunsWhenAllPodsRun) {
  World world("{nodes: 2}");
  world.settle();
  world.pod(0).phase = PodPhase::kRunning;
  world.settle();
  EXPECT_EQ(world.phase(), "Starting");
  world.run_all();
  world.settle();
  EXPECT_EQ(world.phase(), "Running");
  EXPECT_TRUE(world.is(kConditionRunning) && world.is(kConditionReady));
  EXPECT_FALSE(world.is(kConditionReconciling));
  EXPECT_EQ(world.job.status.nodes.active, 2);
  EXPECT_TRUE(world.has_event("Running"));
}

TEST(Start, ARunningJobAtRestPlansNothing) {
  World world("{nodes: 2}");
  world.start();
  world.advance(1h);
  const Plan plan = world.pass();
  EXPECT_FALSE(plan.status);
  EXPECT_TRUE(plan.actions.empty() && plan.events.empty());
}

TEST(Start, WhatHoldsAPodUpIsSaid) {
  World world;
  world.settle();
  world.pod(0).waiting = Waiting{"trainer", false, "ImagePullBackOff", "no such image"};
  world.settle();
  EXPECT_EQ(world.reason(kConditionReconciling), "ImagePullFailed");
  EXPECT_EQ(world.said(kConditionReconciling),
            "Pod j-0 cannot pull the image of its container trainer (ImagePullBackOff): no such image");
}

TEST(Start, APartOfTheGangIsCompleted) {
  World world("{nodes: 3}");
  const Plan plan = world.plan();
  world.apply(plan, static_cast<int>(plan.actions.size()));  // dies before the last pod
  EXPECT_EQ(world.names(), "j-0@0 j-1@0");
  world.settle();
  EXPECT_EQ(world.names(), "j-0@0 j-1@0 j-2@0");
  EXPECT_EQ(world.job.status.attempt, 0);
}

TEST(Start, ANameThatIsTakenStallsTheJobAndIsNeverTouched) {
  World world;
  world.conflicts = {{"Service", "j"}};
  const Plan plan = world.pass();
  EXPECT_TRUE(plan.actions.empty());
  EXPECT_TRUE(world.is(kConditionStalled));
  EXPECT_EQ(world.reason(kConditionStalled), "NameConflict");
  EXPECT_EQ(world.requeue_after, world.settings.name_conflict_retry);
  world.advance(24h);  // no deadline ends a wait that holds nothing
  world.pass();
  EXPECT_EQ(world.phase(), "Stalled");
  EXPECT_EQ(std::count_if(world.events.begin(), world.events.end(),
                          [](const Event& event) { return event.reason == "NameConflict"; }),
            1);
  world.conflicts.clear();
  world.settle();
  EXPECT_EQ(world.phase(), "Starting");
  EXPECT_FALSE(world.is(kConditionStalled));
}

TEST(Start, ANameThatAnEarlierJobsChildStillHasIsWaitedForAndNobodyIsToldToAct) {
  World world;
  world.conflicts = {{"Pod", "j-0", true}};
  EXPECT_TRUE(world.pass().actions.empty());
  EXPECT_FALSE(world.is(kConditionStalled));
  EXPECT_EQ(world.reason(kConditionReconciling), "WaitingForOldJob");
  EXPECT_EQ(world.requeue_after, world.settings.predecessor_retry);
  world.conflicts.clear();
  world.settle();
  EXPECT_EQ(world.names(), "j-0@0");
  EXPECT_EQ(world.reason(kConditionReconciling), "Starting");
}

TEST(Start, WhatTheServerWillNeverAcceptFailsTheJob) {
  World world;
  world.refuse("spec.volumes[0]: Required value", 422);
  world.settle();
  EXPECT_TRUE(world.is(kConditionFailed) && world.is(kConditionStalled));
  EXPECT_EQ(world.reason(kConditionFailed), "InvalidTemplate");
  EXPECT_NE(find_condition(world.job.status, kConditionFailed)->message.find("Required value"),
            std::string::npos);
}

TEST(Start, ABadConfigIsRefusedBeforeAPodExists) {
  World world;
  world.settings.check_config = [](const TrainingJobSpec&) {
    return std::optional<std::string>("lr must be a number");
  };
  world.settle();
  EXPECT_EQ(world.names(), "");
  EXPECT_EQ(world.reason(kConditionFailed), "InvalidConfig");
  EXPECT_EQ(find_condition(world.job.status, kConditionStalled)->message, "lr must be a number");
}

TEST(Start, NothingToRunIsAnInvalidTemplate) {
  World world("{template: {spec: {containers: [{name: main}]}}}");
  world.settle();
  EXPECT_EQ(world.reason(kConditionFailed), "InvalidTemplate");
}

TEST(Start, NothingIsCreatedForAJobThatIsBeingDeleted) {
  World world;
  world.job.metadata.deletion_timestamp = world.now;
  const Plan plan = world.pass();
  EXPECT_FALSE(plan.status);
  EXPECT_TRUE(plan.actions.empty());
}

TEST(Start, TheDefaultImageIsSettledOnce) {
  World world;
  world.settings.runtime_image = "runtime:1";
  world.start();
  world.settings.runtime_image = "runtime:2";
  world.end(0, 70);
  world.advance(10s);
  world.settle();
  EXPECT_EQ(world.job.status.runtime_image, "runtime:1");
}

TEST(Start, ReservedNamesAndALostOutputAreWarnedOf) {
  World world("{env: [{name: RANK, value: '7'}], output: {}}");
  world.settle();
  EXPECT_TRUE(world.has_event("TemplateOverridden"));
  EXPECT_TRUE(world.has_event("OutputNotKept"));
  const size_t count = world.events.size();
  world.run_all();
  world.settle();
  EXPECT_EQ(world.events.size(), count + 1);  // Running: warnings come once
}

}  // namespace
}  // namespace coxswain::testing
