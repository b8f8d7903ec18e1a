#include <gtest/gtest.h>

#include "tests/operator_core/harness.h"

namespace coxswain::testing {
namespace {

using namespace std::chrono_literals;

TEST(ActiveDeadline, EndsTheJobOnTimeThoughNothingElseHappens) {
  World world("{runPolicy: {activeDeadlineSeconds: 60}}");
  world.start();
  world.advance(59s);
  world.settle();
  EXPECT_EQ(world.phase(), "Running");
  EXPECT_EQ(world.requeue_after, Duration(1s));
  world.advance(1s);
  world.settle();
  EXPECT_EQ(world.phase(), "Failed");
  EXPECT_EQ(world.reason(kConditionFailed), "DeadlineExceeded");
  EXPECT_EQ(world.names(), "j-0@0!");
}

TEST(ActiveDeadline, StopsRunningPodsWhateverIsCleaned) {
  World world("{runPolicy: {activeDeadlineSeconds: 60, cleanPodPolicy: None}}");
  world.start();
  world.advance(60s);
  world.settle();
  EXPECT_EQ(world.names(), "j-0@0!");
}

TEST(ActiveDeadline, ACompletedJobIsCompleteThoughLate) {
  World world("{runPolicy: {activeDeadlineSeconds: 60}}");
  world.start();
  world.end(0, 0);
  world.advance(1h);
  world.settle();
  EXPECT_EQ(world.phase(), "Complete");
}

TEST(ActiveDeadline, CountsOverRestartsAndAnewAfterASuspension) {
  World world("{runPolicy: {activeDeadlineSeconds: 60}}");
  world.start();
  world.advance(30s);
  world.job.spec.suspend = true;
  world.settle();
  world.finish_deletions();
  world.advance(1h);
  world.settle();
  world.job.spec.suspend = false;
  world.start();
  world.advance(45s);
  world.settle();
  EXPECT_EQ(world.phase(), "Running");
  world.end(0, 70);
  world.advance(15s);
  world.settle();
  EXPECT_EQ(world.reason(kConditionFailed), "DeadlineExceeded");
}

TEST(StartupDeadline, PodsThatNeverRunAreACountedFailureThatSaysWhy) {
  World world("{nodes: 2, runPolicy: {startupDeadlineSeconds: 100, backoffLimit: 1}}");
  world.settle();
  world.pod(1).waiting = Waiting{"", false, "Unschedulable", "0/3 nodes have a GPU"};
  world.advance(99s);
  world.settle();
  EXPECT_EQ(world.reason(kConditionReconciling), "Unschedulable");
  world.advance(1s);
  world.settle();
  EXPECT_EQ(world.cause(), "StartupDeadlineExceeded");
  EXPECT_EQ(world.job.status.last_failure->pod, "j-1");
  EXPECT_NE(world.job.status.last_failure->message.find("0/3 nodes"), std::string::npos);
  EXPECT_EQ(world.job.status.restarts.counted, 1);
  world.finish_deletions();
  world.advance(10s);
  world.settle();
  EXPECT_EQ(world.names(), "j-0@1 j-1@1");
  world.advance(100s);
  world.settle();
  EXPECT_EQ(world.reason(kConditionFailed), "BackoffLimitExceeded");
}

TEST(StartupDeadline, APartialGangIsReleased) {
  World world("{nodes: 2, runPolicy: {startupDeadlineSeconds: 100}}");
  world.settle();
  world.pod(0).phase = PodPhase::kRunning;
  world.pod(1).waiting = Waiting{"", false, "Unschedulable", "0/3 nodes have a GPU"};
  world.settle();
  EXPECT_EQ(world.names(), "j-0@0 j-1@0");
  world.advance(100s);
  world.settle();
  EXPECT_EQ(world.names(), "j-0@0! j-1@0!");
  EXPECT_EQ(world.cause(), "StartupDeadlineExceeded");
}

TEST(StartupDeadline, DoesNotCountTheTimeOldPodsTakeToEnd) {
  World world("{runPolicy: {startupDeadlineSeconds: 100, terminationGracePeriodSeconds: 3600}, nodes: 2}");
  world.start();
  world.end(0, 70);
  world.advance(3s);
  world.settle();
  world.advance(1000s);
  world.settle();
  EXPECT_EQ(world.job.status.restarts.counted, 1);
  EXPECT_EQ(world.reason(kConditionReconciling), "WaitingForOldPods");
}

TEST(StartupDeadline, IsOverOnceAllHaveStarted) {
  World world("{runPolicy: {startupDeadlineSeconds: 100}}");
  world.start();
  world.advance(1h);
  world.settle();
  EXPECT_EQ(world.phase(), "Running");
}

}  // namespace
}  // namespace coxswain::testing
