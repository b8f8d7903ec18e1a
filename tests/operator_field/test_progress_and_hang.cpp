// What agents tell: into the status with measure, and a hang by it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/parse.h"
#include "tests/operator_field/field_cluster.h"
#include "tests/operator_field/simulated_cluster.h"

namespace coxswain::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class Agents : public ::testing::Test {
 protected:
  void start(const Json& run_policy) {
    const auto created = cluster.submit("j", 3, with_config({{"runPolicy", run_policy}}));
    ASSERT_TRUE(created) << created.error().message;
    cluster.settle();
    ASSERT_EQ(cluster.phase(), "Running");
  }
  void all_at(int64_t step, int64_t attempt = 0) {
    for (int64_t rank = 0; rank < 3; ++rank) {
      cluster.agents.at("j-" + std::to_string(rank), attempt, rank, "train", step);
    }
  }
  SimulatedCluster cluster;
};

TEST_F(Agents, OnlyRankZeroIsAskedWhileItMovesAndTheStatusIsWrittenWithMeasure) {
  start({{"hangTimeoutSeconds", 300}});
  cluster.agents.reads = 0;
  cluster.faulty->forget_calls();
  for (int second = 0; second < 300; ++second) {
    all_at(second + 1);
    cluster.pass_time(1s);
  }
  EXPECT_LE(cluster.agents.reads, 22);
  EXPECT_LE(cluster.count(Verb::kUpdateStatus), 21);
  EXPECT_GE(cluster.status().training->step, 280);
  EXPECT_EQ(cluster.status().training->loss, "2.5");
}

TEST_F(Agents, WhatDoesNotChangeIsNotWritten) {
  start(Json::object());
  all_at(5);
  cluster.pass_time(30s);
  cluster.faulty->forget_calls();
  cluster.pass_time(1h);
  EXPECT_EQ(cluster.count(Verb::kUpdateStatus), 0);
}

TEST_F(Agents, AHangRestartsTheGangAndTheEventSaysWhereEachRankWas) {
  start({{"hangTimeoutSeconds", 300}});
  all_at(42);
  cluster.agents.at("j-1", 0, 1, "train", 41);
  cluster.pass_time(290s);
  EXPECT_EQ(cluster.phase(), "Running");
  cluster.pass_time(40s);
  EXPECT_EQ(cluster.status().restarts.hangs, 1);
  EXPECT_EQ(cluster.status().last_failure->cause, "Hang");
  EXPECT_EQ(cluster.status().last_failure->pod, "j-1");
  EXPECT_TRUE(cluster.has_event("Restarting", "rank 1: train, step 41; ranks 0,2: train, step 42"));
  cluster.agents.answers.clear();
  EXPECT_TRUE(cluster.until([&] { return cluster.phase() == "Running"; }));
}

TEST_F(Agents, ARankThatStillMovesIsNoHangThoughRankZeroStands) {
  start({{"hangTimeoutSeconds", 300}});
  all_at(42);
  for (int minute = 0; minute < 30; ++minute) {
    cluster.agents.at("j-2", 0, 2, minute % 2 == 0 ? "save" : "train", 42);
    cluster.pass_time(1min);
  }
  EXPECT_EQ(cluster.status().attempt, 0);
}

// Half of the timeout after it has heard of them again, at the latest.
TEST_F(Agents, AHangIsFoundThoughTheOperatorRestarts) {
  start({{"hangTimeoutSeconds", 300}});
  all_at(42);
  cluster.pass_time(200s);
  cluster.restart_operator();
  cluster.pass_time(140s);
  EXPECT_EQ(cluster.status().restarts.hangs, 0);
  cluster.pass_time(30s);
  EXPECT_EQ(cluster.status().restarts.hangs, 1);
}

TEST_F(Agents, AnOperatorThatWasDownForLongerThanTheTimeoutTakesNobodyForHung) {
  start({{"hangTimeoutSeconds", 300}});
  all_at(42);
  cluster.pass_time(1min);
  cluster.now += 20min;
  cluster.restart_operator();
  // Rank 0 waits at a step for a rank that loads data; that one moves.
  for (int second = 0; second < 600; second += 10) {
    cluster.agents.at("j-2", 0, 2, second % 20 == 0 ? "load" : "train", 42);
    cluster.pass_time(10s);
  }
  EXPECT_EQ(cluster.status().attempt, 0);
}

TEST_F(Agents, WhereNobodyCanBeReachedNothingIsDecided) {
  start({{"hangTimeoutSeconds", 300}});
  all_at(42);
  cluster.pass_time(1min);
  cluster.agents.answers.clear();  // a network policy, say
  cluster.pass_time(10min);
  EXPECT_TRUE(cluster.has_event("AgentsUnreachable", "NetworkPolicy"));
  EXPECT_THAT(cluster.said(kConditionRunning), HasSubstr("No agent of the job's pods answers"));
  cluster.faulty->forget_calls();
  cluster.pass_time(2h);
  EXPECT_EQ(cluster.phase(), "Running");
  EXPECT_EQ(cluster.status().attempt, 0);
  EXPECT_EQ(cluster.count(Verb::kUpdateStatus), 0) << "said once";
}

TEST_F(Agents, TheWordsOfTheLastAttemptAreNotTakenForThisOnes) {
  start({{"hangTimeoutSeconds", 300}});
  all_at(42);
  cluster.pass_time(1min);
  cluster.end("j-1", 70);
  ASSERT_TRUE(cluster.until([&] { return cluster.phase() == "Running" && cluster.status().attempt == 1; }));
  const int64_t step = cluster.status().training->step;
  all_at(99, 0);  // an agent that should be gone
  cluster.pass_time(1min);
  EXPECT_EQ(cluster.status().training->step, step);
  all_at(43, 1);
  cluster.pass_time(1min);
  EXPECT_EQ(cluster.status().training->step, 43);
}

}  // namespace
}  // namespace coxswain::testing
