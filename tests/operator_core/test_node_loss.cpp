// A node that is not Ready for nodeLostTimeoutSeconds is given up: the gang starts again, not counted, and in
// bounded time.
#include <gtest/gtest.h>

#include "operator/api/parse.h"
#include "operator/reconcile/observed.h"
#include "tests/operator_core/harness.h"

namespace coxswain::testing {
namespace {

using namespace std::chrono_literals;

World running(
    const std::string& policy = "{nodeLostTimeoutSeconds: 60, terminationGracePeriodSeconds: 3600}") {
  World world("{nodes: 2, runPolicy: " + policy + "}");
  world.start();
  for (int64_t rank = 0; rank < 2; ++rank) {
    world.pod(rank).node = "node-" + std::to_string(rank);
    world.pod(rank).node_seen = ObservedNode{};
  }
  return world;
}

TEST(NodeLoss, IsADisruptionAfterItsTimeAndWakesForIt) {
  World world = running();
  world.lose_node(1);
  world.advance(59s);
  world.pass();
  EXPECT_EQ(world.phase(), "Running");
  EXPECT_EQ(world.requeue_after, Duration(1s));
  world.advance(1s);
  world.settle();
  EXPECT_EQ(world.phase(), "Restarting");
  EXPECT_EQ(world.cause(), "NodeLost");
  EXPECT_EQ(world.job.status.last_failure->pod, "j-1");
  EXPECT_EQ(world.job.status.last_failure->message,
            "Node node-1 of pod j-1 is not Ready (NodeStatusUnknown): Kubelet stopped posting node status.");
  EXPECT_EQ(world.job.status.restarts.disruptions, 1);
  EXPECT_EQ(world.job.status.restarts.counted, 0);
}

std::shared_ptr<const Json> node(const char* ready, const char* since) {
  return std::make_shared<const Json>(
      Json{{"status",
            {{"conditions",
              Json::array({{{"type", "Ready"}, {"status", ready}, {"lastTransitionTime", since}}})}}}});
}

TEST(NodeLoss, CountsFromWhenAnythingWasKnownOfNodesAgain) {
  const Objects none;
  const Objects away = {node("Unknown", "2026-01-01T00:00:00Z"), node("False", "2026-01-01T00:00:00Z")};
  const Objects back = {node("Unknown", "2026-01-01T00:00:00Z"), node("True", "2026-01-01T00:30:05Z"),
                        node("True", "2026-01-01T00:30:00Z")};
  EXPECT_FALSE(longest_ready_since(none));
  EXPECT_FALSE(longest_ready_since(away));
  const TimePoint first = *parse_time("2026-01-01T00:30:00Z");
  EXPECT_EQ(longest_ready_since(back), first);

  const auto seen = [](std::optional<TimePoint> longest, const char* lost) {
    Observed observed;
    observed.pods.resize(2);
    observed.pods[0].node_seen = ObservedNode{false, parse_time(lost), "", ""};
    observed.pods[1].node_seen = ObservedNode{};
    count_unready_from(longest, observed);
    return observed;
  };
  EXPECT_EQ(seen(first, "2026-01-01T00:00:00Z").pods[0].node_seen->since, first);
  EXPECT_EQ(seen(first, "2026-01-01T00:40:00Z").pods[0].node_seen->since, parse_time("2026-01-01T00:40:00Z"));
  EXPECT_TRUE(seen(first, "2026-01-01T00:00:00Z").pods[1].node_seen->ready);
  EXPECT_FALSE(seen(std::nullopt, "2026-01-01T00:00:00Z").pods[0].node_seen) << "nothing is known";
}

TEST(NodeLoss, ANodeThatComesBackInTimeCostsNothing) {
  World world = running();
  world.lose_node(1);
  world.advance(59s);
  world.pass();
  world.pod(1).node_seen = ObservedNode{};
  world.advance(1h);
  EXPECT_FALSE(world.pass().status);
}

TEST(NodeLoss, ItsPodIsForcedWithoutWaitingForAGraceThatNobodyUses) {
  World world = running();
  world.lose_node(1);
  world.advance(60s);
  world.settle();
  EXPECT_EQ(world.names(), "j-0@0! j-1@0!");
  std::erase_if(world.pods, [](const ObservedPod& pod) { return pod.node_rank == 0; });  // its node obeys
  world.advance(59s);
  world.settle();
  EXPECT_EQ(world.names(), "j-1@0!");
  world.advance(1s);
  world.settle();
  EXPECT_EQ(world.names(), "j-0@1 j-1@1") << "two minutes after the node was lost";
}

TEST(NodeLoss, APodOnAReadyNodeKeepsItsGrace) {
  World world = running();
  world.lose_node(1);
  world.advance(60s);
  world.settle();
  world.advance(60s);
  world.settle();
  EXPECT_EQ(world.names(), "j-0@0!") << "it may be saving";
}

// Peers notice within seconds, the node controller within a minute.
TEST(NodeLoss, IsTheCauseAlsoWherePeersEndedBeforeItWasKnown) {
  World world = running();
  world.end(0, 76);
  world.advance(40s);
  world.settle();
  EXPECT_EQ(world.phase(), "Running") << "rank 1 has told nothing yet";
  world.lose_node(1);
  world.pass();
  EXPECT_EQ(world.cause(), "NodeLost") << "at once: its silence has been explained";
  EXPECT_EQ(world.job.status.restarts.counted, 0);
}

TEST(NodeLoss, ASilentRankIsNotWaitedForForEver) {
  World world = running();
  world.end(0, 76);
  world.advance(74s);
  world.settle();
  EXPECT_EQ(world.phase(), "Running");
  world.advance(1s);
  world.settle();
  EXPECT_EQ(world.cause(), "LostPeer");
  EXPECT_EQ(world.job.status.restarts.counted, 1);
}

TEST(NodeLoss, AlsoWhileTheGangStarts) {
  World world("{nodes: 2}");
  world.settle();
  world.lose_node(0);
  world.advance(60s);
  world.settle();
  EXPECT_EQ(world.cause(), "NodeLost");
}

TEST(NodeLoss, WhatHasEndedOnItHasEnded) {
  World world = running();
  world.end(1, 0);
  world.lose_node(1);
  world.advance(1h);
  world.settle();
  EXPECT_EQ(world.phase(), "Running");
  world.end(0, 0);
  world.settle();
  EXPECT_EQ(world.phase(), "Complete");
}

TEST(NodeLoss, WhereNothingIsKnownOfNodesNothingIsDecided) {
  World world = running();
  for (ObservedPod& pod : world.pods) pod.node_seen.reset();
  world.advance(24h);
  world.settle();
  EXPECT_EQ(world.phase(), "Running");
}

}  // namespace
}  // namespace coxswain::testing
