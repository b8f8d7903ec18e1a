// The earliest end that is not a consequence of another is the cause.
#include <gtest/gtest.h>

#include "tests/operator_core/harness.h"

namespace coxswain::testing {
namespace {

using namespace std::chrono_literals;

World running(const std::string& spec = "{nodes: 4}") {
  World world(spec);
  world.start();
  world.advance(1min);
  return world;
}

TEST(FailureCause, PeersThatLostAPeerAreNotTheCause) {
  World world = running();
  world.end(0, 76);
  world.end(1, 76);
  world.advance(1s);
  world.end(3, 74, "disk full");
  world.advance(3s);
  world.settle();
  EXPECT_EQ(world.cause(), "Storage");
  EXPECT_EQ(world.job.status.last_failure->node_rank, 3);
}

TEST(FailureCause, ItIsNotDecidedBeforePeersCouldTell) {
  World world = running();
  world.end(0, 70);
  world.settle();
  EXPECT_EQ(world.phase(), "Running");
  EXPECT_EQ(world.job.status.nodes.failed, 1);
  EXPECT_EQ(world.requeue_after, world.settings.settle);
  world.advance(world.settings.settle);
  world.settle();
  EXPECT_EQ(world.phase(), "Restarting");
}

TEST(FailureCause, LostPeersAloneAreWaitedForLongerAndThenCounted) {
  World world = running();
  world.end(0, 76);
  world.advance(world.settings.settle + 1s);
  world.settle();
  EXPECT_EQ(world.phase(), "Running");
  world.advance(world.settings.settle_collateral);
  world.settle();
  EXPECT_EQ(world.cause(), "LostPeer");
  EXPECT_EQ(world.job.status.restarts.counted, 1);
}

TEST(FailureCause, BadInputIsNeverRetriedThoughPeersDiedFirst) {
  World world = running();
  world.end(1, 76);
  world.end(3, 2, "train.jsonl:7: is not JSON");
  world.advance(3s);
  world.settle();
  EXPECT_EQ(world.phase(), "Failed");
  EXPECT_EQ(world.reason(kConditionFailed), "BadInput");
  EXPECT_EQ(world.cause(), "BadInput");
  EXPECT_NE(find_condition(world.job.status, kConditionFailed)->message.find("train.jsonl:7"),
            std::string::npos);
  EXPECT_EQ(world.job.status.restarts.counted, 0);
}

TEST(FailureCause, ExitCodesOfAnotherProgramMeanNothing) {
  for (const int64_t code : {2, 75, 76}) {
    World world = running("{template: {spec: {containers: [{name: trainer, image: a, command: [b]}]}}}");
    world.end(0, code);
    world.advance(3s);
    world.settle();
    EXPECT_EQ(world.cause(), "Error") << code;
    EXPECT_EQ(world.job.status.restarts.counted, 1) << code;
    EXPECT_EQ(world.phase(), "Restarting") << code;
  }
}

struct Named {
  const char* cause;
  int64_t exit_code;
  const char* container_reason;
  const char* pod_reason;
  const char* disruption;
  bool counted;
};

TEST(FailureCause, Words) {
  const Named cases[] = {{"Internal", 70, "", "", "", true},
                         {"Storage", 74, "", "", "", true},
                         {"RendezvousTimeout", 77, "", "", "", true},
                         {"PortInUse", 78, "", "", "", true},
                         {"Error", 139, "", "", "", true},
                         {"OOMKilled", 137, "OOMKilled", "", "", true},
                         {"Stopped", 75, "", "", "", false},
                         {"Evicted", 137, "", "Evicted", "", false},
                         {"Evicted", 137, "", "", "EvictionByEvictionAPI", false},
                         {"Preempted", 75, "", "", "PreemptionByScheduler", false},
                         {"NodeLost", 137, "", "", "DeletionByTaintManager", false},
                         {"NodeLost", 255, "Unknown", "", "", false},
                         {"NodeShutdown", 75, "", "Terminated", "TerminationByKubelet", false}};
  for (const Named& test : cases) {
    World world = running();
    world.end(2, test.exit_code, "", test.container_reason);
    world.pod(2).reason = test.pod_reason;
    world.pod(2).disruption = test.disruption;
    world.advance(20s);
    world.settle();
    EXPECT_EQ(world.cause(), test.cause) << test.exit_code;
    EXPECT_EQ(world.job.status.restarts.counted, test.counted ? 1 : 0) << test.cause;
    EXPECT_EQ(world.job.status.restarts.disruptions, test.counted ? 0 : 1) << test.cause;
  }
}

TEST(FailureCause, APodRejectedByItsNodeNeverRanATrainer) {
  World world("{nodes: 2}");
  world.settle();
  world.pod(1).phase = PodPhase::kFailed;
  world.pod(1).reason = "OutOfcpu";
  world.settle();
  EXPECT_EQ(world.cause(), "NodeRejected");
  EXPECT_EQ(world.job.status.restarts.disruptions, 1);
}

TEST(FailureCause, StoppedPeersFollowTheOneThatWasEvicted) {
  World world = running();
  for (int64_t rank = 0; rank < 3; ++rank) world.end(rank, 75);
  world.advance(1s);
  world.end(3, 75);
  world.pod(3).reason = "Evicted";
  world.advance(20s);
  world.settle();
  EXPECT_EQ(world.cause(), "Evicted");
  EXPECT_EQ(world.job.status.last_failure->pod, "j-3");
}

TEST(FailureCause, APodDeletedByHandRestartsTheGangUncounted) {
  World world = running();
  world.pod(2).deletion_time = world.now + 120s;
  world.settle();
  world.advance(3s);
  world.settle();
  EXPECT_EQ(world.cause(), "PodDeleted");
  EXPECT_EQ(world.names(), "j-0@0! j-1@0! j-2@0! j-3@0!");
  world.finish_deletions();
  world.advance(1min);
  world.settle();
  EXPECT_EQ(world.names(), "j-0@1 j-1@1 j-2@1 j-3@1");
  EXPECT_EQ(world.job.status.restarts, (RestartsStatus{0, 1}));
}

TEST(FailureCause, APodThatVanishedUnseenIsLostAndNotCounted) {
  World world = running();
  world.vanish(1);
  world.settle();
  EXPECT_EQ(world.cause(), "PodLost");
  EXPECT_EQ(world.job.status.restarts, (RestartsStatus{0, 1}));
  EXPECT_EQ(world.job.status.attempt, 1);
}

TEST(FailureCause, AllPodsVanishedIsOneLoss) {
  World world = running();
  world.pods.clear();
  world.settle();
  EXPECT_EQ(world.cause(), "PodLost");
  EXPECT_EQ(world.job.status.attempt, 1);
}

TEST(FailureCause, AClockThatIsAheadDelaysNothing) {
  World world = running();
  world.end(1, 70);
  world.pod(1).termination->finished = world.now + 1h;
  world.settle();
  EXPECT_EQ(world.phase(), "Restarting");
}

TEST(FailureCause, InTheSameSecondWhatCameFromOutsideExplainsTheRest) {
  World world =
      running("{nodes: 2, template: {spec: {containers: [{name: trainer, image: a, command: [b]}]}}}");
  world.end(0, 1);
  world.end(1, 137);
  world.pod(1).reason = "Evicted";
  world.advance(3s);
  world.settle();
  EXPECT_EQ(world.cause(), "Evicted");
}

}  // namespace
}  // namespace coxswain::testing
