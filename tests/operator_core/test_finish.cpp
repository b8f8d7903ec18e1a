// Complete and Failed are for ever; cleanPodPolicy and ttlSecondsAfterFinished say what is left.
#include <gtest/gtest.h>

#include "tests/operator_core/harness.h"

namespace coxswain::testing {
namespace {

using namespace std::chrono_literals;

TEST(Finish, CompleteWhenEveryTrainerEndedWithZero) {
  World world("{nodes: 2}");
  world.start();
  world.end(0, 0);
  world.settle();
  EXPECT_EQ(world.phase(), "Running");
  world.end(1, 0);
  world.settle();
  EXPECT_EQ(world.phase(), "Complete");
  EXPECT_TRUE(world.is(kConditionReady));
  EXPECT_FALSE(world.is(kConditionRunning) || world.is(kConditionReconciling) || world.is(kConditionStalled));
  EXPECT_EQ(world.job.status.completion_time, world.now);
  EXPECT_EQ(world.job.status.nodes.succeeded, 2);
}

World one_done_one_with_a_sidecar(const std::string& policy) {
  World world("{nodes: 2, runPolicy: {cleanPodPolicy: " + policy + "}}");
  world.start();
  world.end(0, 0);
  world.end(1, 0);
  world.pod(1).phase = PodPhase::kRunning;  // a sidecar still runs
  world.settle();
  EXPECT_EQ(world.phase(), "Complete");
  return world;
}

TEST(CleanPods, RunningDeletesWhatStillRuns) {
  EXPECT_EQ(one_done_one_with_a_sidecar("Running").names(), "j-0@0 j-1@0!");
}
TEST(CleanPods, AllDeletesAll) {
  EXPECT_EQ(one_done_one_with_a_sidecar("All").names(), "j-1@0!");
}
TEST(CleanPods, NoneDeletesNone) {
  EXPECT_EQ(one_done_one_with_a_sidecar("None").names(), "j-0@0 j-1@0");
}

TEST(CleanPods, AFailedJobLetsTheOthersGo) {
  World world("{nodes: 2, runPolicy: {backoffLimit: 0}}");
  world.start();
  world.end(1, 70);
  world.advance(3s);
  world.settle();
  EXPECT_EQ(world.names(), "j-0@0! j-1@0");
}

TEST(Finish, TerminalIsForEver) {
  for (const int64_t code : {0, 2}) {
    World world;
    world.start();
    world.end(0, code);
    world.advance(3s);
    world.settle();
    const TrainingJobStatus before = world.job.status;
    world.pods.clear();
    world.job.metadata.generation = 1;
    for (int i = 0; i < 5; ++i) {
      world.advance(1h);
      world.settle();
    }
    EXPECT_EQ(world.job.status.conditions, before.conditions);
    EXPECT_EQ(world.job.status.attempt, before.attempt);
    EXPECT_EQ(world.names(), "");
  }
}

TEST(Ttl, DeletesTheJobOnTimeAndWakesForIt) {
  World world("{runPolicy: {ttlSecondsAfterFinished: 60}}");
  world.start();
  world.end(0, 0);
  world.settle();
  EXPECT_EQ(world.requeue_after, Duration(60s));
  world.advance(59s);
  world.settle();
  EXPECT_FALSE(world.job_deleted);
  world.advance(1s);
  world.pass();
  EXPECT_TRUE(world.job_deleted);
}

TEST(Ttl, AlsoAfterTheOperatorWasDown) {
  World world("{runPolicy: {ttlSecondsAfterFinished: 0, backoffLimit: 0}}");
  world.start();
  world.end(0, 70);
  world.advance(3s);
  world.pass();
  EXPECT_FALSE(world.job_deleted) << "not in the pass that learns of the end";
  world.advance(24h);
  world.pass();
  EXPECT_TRUE(world.job_deleted);
}

TEST(Ttl, WithoutOneTheJobIsKept) {
  World world;
  world.start();
  world.end(0, 0);
  world.settle();
  world.advance(24h * 365);
  world.settle();
  EXPECT_FALSE(world.job_deleted);
}

}  // namespace
}  // namespace coxswain::testing
