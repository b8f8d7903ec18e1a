// One pod's failure restarts them all: status first, delete, wait until gone, back off, create again.
#include <gtest/gtest.h>

#include "operator/reconcile/backoff.h"
#include "tests/operator_core/harness.h"

namespace coxswain::testing {
namespace {

using namespace std::chrono_literals;

TEST(GangRestart, OneFailureRestartsAllAsTheNextAttempt) {
  World world("{nodes: 2}");
  world.start();
  world.end(1, 70, "out of luck");
  world.advance(3s);
  world.pass();
  EXPECT_EQ(world.phase(), "Restarting");
  EXPECT_EQ(world.names(), "j-0@0!");  // the failed one is gone at once, the other has its grace
  EXPECT_EQ(world.job.status.attempt, 1);
  EXPECT_EQ(world.job.status.restarts.counted, 1);
  EXPECT_EQ(world.job.status.last_failure->pod, "j-1");
  EXPECT_EQ(world.job.status.last_failure->exit_code, 70);
  EXPECT_NE(world.job.status.last_failure->message.find("out of luck"), std::string::npos);

  world.advance(1min);
  world.settle();
  EXPECT_EQ(world.names(), "j-0@0!") << "nothing is created while an old pod is there";
  world.finish_deletions();
  world.settle();
  EXPECT_EQ(world.names(), "j-0@1 j-1@1");
  EXPECT_EQ(world.config_maps, std::set<int64_t>{1});
  world.run_all();
  world.settle();
  EXPECT_EQ(world.phase(), "Running");
  EXPECT_FALSE(world.is(kConditionRestarting));
  EXPECT_EQ(world.job.status.restarts.counted, 1);
}

TEST(GangRestart, TheBackOffIsKept) {
  World world;
  world.start();
  world.end(0, 70);
  world.advance(3s);
  world.settle();
  EXPECT_EQ(world.names(), "");
  EXPECT_EQ(world.reason(kConditionReconciling), "BackingOff");
  ASSERT_TRUE(world.requeue_after);
  EXPECT_GE(*world.requeue_after, 4s);
  EXPECT_LE(*world.requeue_after, 7s);
  world.advance(*world.requeue_after);
  world.settle();
  EXPECT_EQ(world.names(), "j-0@1");
}

TEST(GangRestart, TheDelayDoublesToItsBoundWithSomeJitter) {
  const Settings settings;
  Duration before = 0s;
  for (int64_t counted = 1; counted < 40; ++counted) {
    const Duration delay = restart_delay("u", counted, counted, settings);
    const Duration plain = std::min<Duration>(5s * (int64_t{1} << std::min<int64_t>(counted - 1, 20)), 5min);
    EXPECT_GE(delay, plain);
    EXPECT_LE(delay, plain + plain / 4);
    EXPECT_EQ(delay, restart_delay("u", counted, counted, settings));
    before = delay;
  }
  EXPECT_NE(restart_delay("u", 1, 1, settings), restart_delay("v", 1, 1, settings));
}

TEST(GangRestart, AnOperatorThatDiesAnywhereCountsOnceAndKeepsTheCause) {
  World first("{nodes: 3}");
  first.start();
  first.end(2, 70, "evidence");
  first.advance(3s);
  const int writes = static_cast<int>(first.plan().actions.size()) + 1;
  for (int survived = 0; survived <= writes; ++survived) {
    World world = first;
    world.apply(world.plan(), survived);
    world.settle();
    world.finish_deletions();
    world.advance(1min);
    world.settle();
    EXPECT_EQ(world.names(), "j-0@1 j-1@1 j-2@1") << survived;
    EXPECT_EQ(world.job.status.restarts.counted, 1) << survived;
    EXPECT_NE(world.job.status.last_failure->message.find("evidence"), std::string::npos) << survived;
  }
}

TEST(GangRestart, TheLimitEndsIt) {
  World world("{runPolicy: {backoffLimit: 2}}");
  for (int failure = 0; failure < 3; ++failure) {
    world.start();
    ASSERT_EQ(world.phase(), "Running") << failure;
    world.end(0, 70);
    world.advance(3s);
    world.settle();
    world.advance(1min);
  }
  EXPECT_EQ(world.phase(), "Failed");
  EXPECT_EQ(world.reason(kConditionFailed), "BackoffLimitExceeded");
  EXPECT_EQ(world.job.status.restarts.counted, 2);
  EXPECT_EQ(world.job.status.attempt, 2);
}

TEST(GangRestart, NoLimitMeansNoRetry) {
  World world("{runPolicy: {backoffLimit: 0}}");
  world.start();
  world.end(0, 1);
  world.advance(3s);
  world.settle();
  EXPECT_EQ(world.phase(), "Failed");
}

TEST(GangRestart, DisruptionsAreNeverCounted) {
  World world("{runPolicy: {backoffLimit: 0}}");
  for (int i = 0; i < 5; ++i) {
    world.start();
    world.end(0, 137);
    world.pod(0).reason = "Evicted";
    world.advance(3s);
    world.settle();
    world.advance(1min);
  }
  world.start();
  EXPECT_EQ(world.phase(), "Running");
  EXPECT_EQ(world.job.status.restarts.counted, 0);
  EXPECT_EQ(world.job.status.restarts.disruptions, 5);
}

TEST(GangRestart, APodStuckOnADeadNodeIsForcedAfterABound) {
  World world("{nodes: 2, runPolicy: {terminationGracePeriodSeconds: 30}}");
  world.start();
  world.end(1, 70);
  world.advance(3s);
  world.settle();
  EXPECT_EQ(world.names(), "j-0@0!");
  ASSERT_TRUE(world.requeue_after);
  world.advance(30s + 59s);
  world.settle();
  EXPECT_EQ(world.names(), "j-0@0!");
  world.advance(1s);
  world.settle();
  EXPECT_EQ(world.names(), "j-0@1 j-1@1");
}

TEST(GangRestart, AnEventTellsOnceOfAForcedDeletion) {
  World world("{nodes: 2, runPolicy: {terminationGracePeriodSeconds: 30}}");
  world.start();
  world.pod(0).node = "node-7";
  world.end(1, 70);
  world.advance(3s);
  world.settle();
  EXPECT_FALSE(world.has_event("PodForceDeleted"));
  world.advance(90s);
  world.settle();
  const auto told = std::find_if(world.events.begin(), world.events.end(),
                                 [](const Event& event) { return event.reason == "PodForceDeleted"; });
  ASSERT_NE(told, world.events.end());
  EXPECT_EQ(told->message,
            "Deleted by force, because its grace is over and it is still there: j-0 on node node-7.");
  EXPECT_EQ(std::count_if(told, world.events.end(),
                          [](const Event& event) { return event.reason == "PodForceDeleted"; }),
            1);
}

TEST(GangRestart, WhatAPodOfTheLastAttemptWaitsForIsSaid) {
  World world("{nodes: 2}");
  world.start();
  world.pod(0).node = "node-7";
  world.pod(0).finalizers = {"example.com/keep"};
  world.end(1, 70);
  world.advance(3s);
  world.settle();
  world.advance(10min);
  world.pass();
  EXPECT_EQ(world.said(kConditionReconciling),
            "Waiting for 1 pod(s) of an earlier attempt to end: j-0 on node node-7, which the finalizer "
            "example.com/keep holds.");
}

TEST(GangRestart, PodsOfAnotherSpecAreRebuiltUncounted) {
  World world("{nodes: 3}");
  world.start();
  world.job.spec.nodes = 2;  // suspended, changed and resumed between two passes
  world.settle();
  world.finish_deletions();
  world.advance(1min);
  world.settle();
  EXPECT_EQ(world.names(), "j-0@1 j-1@1");
  EXPECT_EQ(world.cause(), "SpecChanged");
  EXPECT_EQ(world.job.status.restarts, RestartsStatus());
}

TEST(GangRestart, AFingerprintOfAnotherReleaseRestartsNobody) {
  World world;
  world.start();
  world.pod(0).spec_fingerprint = "0-abc";
  EXPECT_FALSE(world.pass().status);
}

}  // namespace
}  // namespace coxswain::testing
