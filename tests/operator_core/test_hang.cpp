// No rank moves for hangTimeoutSeconds: the gang starts again, counted, and the event says where each rank
// was.
#include <gtest/gtest.h>

#include <algorithm>

#include "operator/reconcile/hang.h"
#include "tests/operator_core/harness.h"

namespace coxswain::testing {
namespace {

using namespace std::chrono_literals;

constexpr char kSpec[] = "{nodes: 3, runPolicy: {hangTimeoutSeconds: 300, backoffLimit: 1}}";

Progress at_step(int64_t step) {
  Progress progress;
  progress.step = step;
  return progress;
}

World running(const std::string& spec = kSpec) {
  World world(spec);
  world.start();
  world.progress = at_step(41);
  world.settle();
  return world;
}

TEST(Hang, RestartsTheGangOnTimeAndIsCountedAsOne) {
  World world = running();
  world.everyone_at({42, 41, 42});
  world.advance(299s);
  world.settle();
  EXPECT_EQ(world.phase(), "Running");
  EXPECT_EQ(world.requeue_after, Duration(1s));
  world.advance(1s);
  world.settle();
  EXPECT_EQ(world.phase(), "Restarting");
  EXPECT_EQ(world.cause(), "Hang");
  EXPECT_EQ(world.job.status.restarts.hangs, 1);
  EXPECT_EQ(world.job.status.restarts.counted, 1);
}

TEST(Hang, SaysWhereEachRankWasAndWhoStandsOut) {
  World world = running();
  world.everyone_at({42, 41, 42});
  world.advance(300s);
  world.pass();
  const std::string words =
      "No rank has moved for hangTimeoutSeconds (300 s): rank 1: train, step 41; ranks 0,2: train, step 42.";
  EXPECT_EQ(world.job.status.last_failure->message, words);
  EXPECT_EQ(world.job.status.last_failure->pod, "j-1");
  EXPECT_EQ(world.events.back().message, words + " All pods start again.");
}

TEST(Hang, ThePositionsOfAThousandRanksFitAnEvent) {
  std::vector<AgentAnswer> agents;
  for (int64_t rank = 0; rank < 1000; ++rank) {
    agents.push_back({"j-" + std::to_string(rank), rank, {{{rank, "train", rank == 417 ? 41 : 42}}}});
  }
  agents.push_back({"j-1000", 1000, std::nullopt});
  EXPECT_EQ(positions_in_words(agents),
            "rank 417: train, step 41; ranks 0-416,418-999: train, step 42; pod j-1000: no answer");
  for (AgentAnswer& agent : agents) {
    if (agent.ranks) agent.ranks->front().step = agent.node_rank;  // each at another step
  }
  EXPECT_LE(positions_in_words(agents).size(), 710U);
}

TEST(Hang, AStepOfRankZeroOrAnotherWordOfAnyRankStartsTheTimeAnew) {
  World world = running();
  world.everyone_at({41, 41, 41});
  world.advance(290s);
  world.progress = at_step(42);
  world.settle();
  world.advance(290s);
  world.settle();
  EXPECT_EQ(world.phase(), "Running");
  world.moved = world.now;  // rank 2 saves
  world.advance(290s);
  world.settle();
  EXPECT_EQ(world.phase(), "Running");
  world.advance(10s);
  world.settle();
  EXPECT_EQ(world.cause(), "Hang");
}

TEST(Hang, BeforeTheFirstStepTheTimeCountsFromWhenAllRan) {
  World world(kSpec);
  world.start();
  for (int64_t rank = 0; rank < 3; ++rank) {
    world.agents.push_back({world.pod(rank).name, rank, {{{rank, "load", std::nullopt}}}});
  }
  world.advance(300s);
  world.settle();
  EXPECT_EQ(world.cause(), "Hang");
  EXPECT_NE(world.job.status.last_failure->message.find("ranks 0-2: load, no step yet"), std::string::npos);
  EXPECT_EQ(world.job.status.last_failure->pod, "") << "nobody stands out";
}

TEST(Hang, WhereNoAgentAnswersNothingIsKnown) {
  World world = running();
  for (int64_t rank = 0; rank < 3; ++rank) world.agents.push_back({world.pod(rank).name, rank, std::nullopt});
  world.advance(24h);
  world.settle();
  EXPECT_EQ(world.phase(), "Running");
}

TEST(Hang, ThatNoAgentAnswersIsSaidOnceFromTheTimeoutOnAndNoLongerThanItLasts) {
  World world = running();
  for (int64_t rank = 0; rank < 3; ++rank) world.agents.push_back({world.pod(rank).name, rank, std::nullopt});
  world.advance(299s);
  world.settle();
  EXPECT_EQ(world.said(kConditionRunning), "All pods of the attempt run.");
  for (int hour = 0; hour < 3; ++hour) {
    world.advance(1h);
    world.settle();
  }
  EXPECT_EQ(world.said(kConditionRunning),
            "All pods of the attempt run. No agent of the job's pods answers on port 9470, so "
            "hangTimeoutSeconds (300 s) has no "
            "effect. Let the operator reach the pods there (NetworkPolicy).");
  EXPECT_EQ(std::count_if(world.events.begin(), world.events.end(),
                          [](const Event& event) { return event.reason == "AgentsUnreachable"; }),
            1);
  world.everyone_at({41, 41, 41});
  world.moved = world.heard = world.now;
  world.settle();
  EXPECT_EQ(world.said(kConditionRunning), "All pods of the attempt run.");
}

TEST(Hang, IsNotLookedForWithoutATimeout) {
  World world = running("{nodes: 3}");
  world.everyone_at({41, 41, 41});
  world.advance(24h);
  world.settle();
  EXPECT_EQ(world.phase(), "Running");
}

TEST(Hang, EndsTheJobWhenTheLimitIsReached) {
  World world = running();
  for (int i = 0; i < 2; ++i) {
    world.everyone_at({41, 41, 41});
    world.advance(300s);
    world.settle();
    world.finish_deletions();
    world.advance(1min);
    world.agents.clear();
    if (i == 0) world.start();
  }
  EXPECT_EQ(world.reason(kConditionFailed), "BackoffLimitExceeded");
  EXPECT_EQ(world.job.status.restarts.hangs, 1);
}

TEST(Hang, AllAgentsAreAskedFromHalfOfTheTimeOn) {
  const World world = running();
  EXPECT_FALSE(is_everyone_asked(world.job, std::nullopt, world.now + 149s));
  EXPECT_TRUE(is_everyone_asked(world.job, std::nullopt, world.now + 150s));
  EXPECT_FALSE(is_everyone_asked(world.job, world.now + 1s, world.now + 150s));
  EXPECT_FALSE(is_everyone_asked(World("{nodes: 3}").job, std::nullopt, world.now + 24h));
}

TEST(Hang, TheCountHoldsOverARestartOfTheOperator) {
  World world = running();
  world.advance(200s);
  world.moved.reset();  // nothing is remembered; status.training.lastProgressTime is
  world.everyone_at({41, 41, 41});
  world.advance(100s);
  world.settle();
  EXPECT_EQ(world.cause(), "Hang");
}

// Ranks other than 0 may have moved while it was down: nobody is judged by one look.
TEST(Hang, AnOperatorThatHasJustStartedListensForHalfOfTheTimeFirst) {
  World world = running();
  world.advance(1h);
  world.heard = world.now;
  world.everyone_at({41, 41, 41});
  world.settle();
  EXPECT_EQ(world.phase(), "Running");
  EXPECT_EQ(world.requeue_after, Duration(150s));
  world.advance(149s);
  world.settle();
  EXPECT_EQ(world.phase(), "Running");
  world.advance(1s);
  world.settle();
  EXPECT_EQ(world.cause(), "Hang");
}

}  // namespace
}  // namespace coxswain::testing
