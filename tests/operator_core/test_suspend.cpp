#include <gtest/gtest.h>

#include "tests/operator_core/harness.h"

namespace coxswain::testing {
namespace {

using namespace std::chrono_literals;

TEST(Suspend, AtCreationMakesNoPod) {
  World world("{suspend: true}");
  world.settle();
  EXPECT_EQ(world.names(), "");
  EXPECT_FALSE(world.has_service);
  EXPECT_EQ(world.phase(), "Suspended");
  EXPECT_TRUE(world.is(kConditionSuspended) && world.is(kConditionReady));
  EXPECT_EQ(world.job.status.attempt, 0);
  EXPECT_FALSE(world.job.status.start_time);
}

TEST(Suspend, StopsThePodsAndIsSuspendedWhenTheyAreGone) {
  World world("{nodes: 2}");
  world.start();
  world.job.spec.suspend = true;
  world.settle();
  EXPECT_EQ(world.phase(), "Suspending");
  EXPECT_FALSE(world.is(kConditionSuspended));
  EXPECT_EQ(world.names(), "j-0@0! j-1@0!");
  world.end(0, 75);
  world.end(1, 75);
  world.finish_deletions();
  world.settle();
  EXPECT_EQ(world.phase(), "Suspended");
  EXPECT_EQ(world.job.status.restarts, RestartsStatus());
  EXPECT_EQ(world.cause(), "");
}

TEST(Suspend, ResumeStartsTheNextAttemptAtOnceFromTheNewSpec) {
  World world("{nodes: 2}");
  world.start();
  world.job.spec.suspend = true;
  world.settle();
  world.finish_deletions();
  world.settle();
  world.job.spec.nodes = 3;
  world.job.spec.suspend = false;
  world.advance(1h);
  world.settle();
  EXPECT_EQ(world.names(), "j-0@1 j-1@1 j-2@1");
  EXPECT_EQ(world.job.status.start_time, world.now);
  EXPECT_FALSE(world.is(kConditionSuspended));
  EXPECT_TRUE(world.has_event("Resumed"));
}

TEST(Suspend, ResumeWaitsForPodsThatStillSave) {
  World world;
  world.start();
  world.job.spec.suspend = true;
  world.settle();
  world.job.spec.suspend = false;
  world.settle();
  EXPECT_EQ(world.names(), "j-0@0!");
  world.finish_deletions();
  world.settle();
  EXPECT_EQ(world.names(), "j-0@1");
}

TEST(Suspend, ATrainingThatHadJustEndedIsComplete) {
  World world;
  world.start();
  world.end(0, 0);
  world.job.spec.suspend = true;
  world.settle();
  EXPECT_EQ(world.phase(), "Complete");
}

TEST(Suspend, DuringABackOffForgetsTheBackOff) {
  World world;
  world.start();
  world.end(0, 70);
  world.advance(3s);
  world.settle();
  world.job.spec.suspend = true;
  world.settle();
  EXPECT_EQ(world.phase(), "Suspended");
  EXPECT_FALSE(world.is(kConditionRestarting));
  world.job.spec.suspend = false;
  world.settle();
  EXPECT_EQ(world.names(), "j-0@2");
}

TEST(Suspend, AFinishedJobStaysFinished) {
  World world;
  world.start();
  world.end(0, 0);
  world.settle();
  world.job.spec.suspend = true;
  world.settle();
  EXPECT_EQ(world.phase(), "Complete");
  EXPECT_FALSE(world.is(kConditionSuspended));
}

TEST(Suspend, AnOperatorThatDiesAnywhereBumpsTheAttemptOnce) {
  World first("{nodes: 2}");
  first.start();
  first.job.spec.suspend = true;
  for (int survived = 0; survived <= 3; ++survived) {
    World world = first;
    world.apply(world.plan(), survived);
    world.settle();
    world.finish_deletions();
    world.settle();
    EXPECT_EQ(world.phase(), "Suspended");
    EXPECT_EQ(world.job.status.attempt, 1);
  }
}

}  // namespace
}  // namespace coxswain::testing
