// Reports of pods that fail, vanish, or stand on nodes that are lost.
#include <gmock/gmock.h>

#include <algorithm>

#include "contract/contract.h"
#include "operator/api/parse.h"
#include "tests/operator_field/field_cluster.h"

namespace coxswain::testing {
namespace {

using namespace resources;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

bool has_ended(const Json& pod) {
  const std::string phase = pod["status"].value("phase", "");
  return phase == "Failed" || phase == "Succeeded";
}

FIELD_REPORT(PodsOfTheLastAttemptThatStillTerminateAreWaitedFor) {
  ASSERT_TRUE(cluster.submit(2));
  ASSERT_TRUE(cluster.runs());
  const std::string node = cluster.node_of("j-0");
  cluster.end("j-1", 1);
  cluster.lose_node(node);  // nobody confirms its deletion
  ASSERT_TRUE(cluster.until([&] { return cluster.reason(kConditionReconciling) == "WaitingForOldPods"; }));
  cluster.let_pass(20s);
  EXPECT_EQ(cluster.pods().size(), 1U) << "j-1 is not created beside it";
  EXPECT_EQ(cluster.reason(kConditionReconciling), "WaitingForOldPods");
  EXPECT_FALSE(has_condition(cluster.status(), kConditionFailed));
  cluster.bring_back(node);
  EXPECT_TRUE(cluster.runs(1));
}

FIELD_REPORT(RankThreesBadConfigurationIsTheCauseThoughItsPeersDieOfConnectionResetFirst) {
  ASSERT_TRUE(cluster.submit(4, with_config()));
  ASSERT_TRUE(cluster.runs());
  for (const char* peer : {"j-0", "j-1", "j-2"}) cluster.end(peer, 76, "connection reset by peer");
  cluster.let_pass(5s);
  cluster.end("j-3", 2, "learning_rate must be above 0");
  ASSERT_TRUE(cluster.until_phase("Failed"));
  EXPECT_EQ(cluster.status().last_failure->cause, "BadInput");
  EXPECT_EQ(cluster.status().last_failure->node_rank, 3);
  EXPECT_THAT(cluster.said(kConditionFailed), HasSubstr("learning_rate"));
}

FIELD_REPORT(AWorkerPodDeletedByHandRestartsTheGangAndIsNotCounted) {
  ASSERT_TRUE(cluster.submit(3));
  ASSERT_TRUE(cluster.runs());
  ASSERT_TRUE(cluster.server().remove(kPods, cluster.ns(), "j-2", {}));
  ASSERT_TRUE(cluster.runs(1));
  EXPECT_EQ(cluster.pods().size(), 3U);
  EXPECT_EQ(cluster.status().restarts.disruptions, 1);
  EXPECT_EQ(cluster.status().restarts.counted, 0);
}

FIELD_REPORT(AWorkerPodDeletedByForceRestartsTheGangAndIsNotCounted) {
  ASSERT_TRUE(cluster.submit(3));
  ASSERT_TRUE(cluster.runs());
  DeleteOptions at_once;
  at_once.grace_period_seconds = 0;
  ASSERT_TRUE(cluster.server().remove(kPods, cluster.ns(), "j-2", at_once));
  ASSERT_TRUE(cluster.runs(1));
  EXPECT_EQ(cluster.pods().size(), 3U);
  EXPECT_EQ(cluster.status().restarts.disruptions, 1);
  EXPECT_EQ(cluster.status().restarts.counted, 0);
}

FIELD_REPORT(WhenAWorkerFailsForGoodTheMasterDoesNotKeepItsGpu) {
  ASSERT_TRUE(cluster.submit(3, {{"runPolicy", {{"backoffLimit", 0}}}}));
  ASSERT_TRUE(cluster.runs());
  cluster.end("j-2", 1);
  ASSERT_TRUE(cluster.until_phase("Failed"));
  EXPECT_TRUE(cluster.until([&] { return std::ranges::all_of(cluster.pods(), has_ended); }));
  EXPECT_EQ(cluster.reason(kConditionFailed), "BackoffLimitExceeded");
}

FIELD_REPORT(WhatStillRunsWhenTheJobSucceedsIsCleanedByDefault) {
  ASSERT_TRUE(cluster.submit(2));
  ASSERT_TRUE(cluster.runs());
  cluster.end("j-0", 0);
  cluster.end("j-1", 0);
  cluster.patch_pod_status("j-1", {{"phase", "Running"}});  // a sidecar stays
  ASSERT_TRUE(cluster.until_phase("Complete"));
  EXPECT_TRUE(cluster.until([&] { return cluster.pods().size() == 1; }));
  EXPECT_TRUE(cluster.pod("j-1").is_null());
}

FIELD_REPORT(APodThatTerminatesForEverOnADownNodeIsForcedAndTheGangRestartsElsewhere) {
  ASSERT_TRUE(cluster.submit(
      2, {{"runPolicy", {{"terminationGracePeriodSeconds", 3600}, {"nodeLostTimeoutSeconds", 5}}}}));
  ASSERT_TRUE(cluster.runs());
  const std::string node = cluster.node_of("j-1");
  const TimePoint start = cluster.now();
  cluster.lose_node(node);
  ASSERT_TRUE(cluster.runs(1));
  // Told at once or after 40 s, given up 5 s later, forced 60 s after that.
  EXPECT_GE(cluster.now() - start, 64s);
  EXPECT_LE(cluster.now() - start, 3min);
  EXPECT_EQ(cluster.status().last_failure->cause, "NodeLost");
  EXPECT_THAT(cluster.status().last_failure->message, HasSubstr(node));
  EXPECT_EQ(cluster.status().restarts.disruptions, 1);
  EXPECT_EQ(cluster.status().restarts.counted, 0);
  for (const Json& pod : cluster.pods()) EXPECT_NE(pod["spec"]["nodeName"], node);
}

FIELD_REPORT(AFailedPodOfAGracefulNodeShutdownIsADisruption) {
  ASSERT_TRUE(cluster.submit(2, {{"runPolicy", {{"backoffLimit", 0}}}}));
  ASSERT_TRUE(cluster.runs());
  cluster.patch_pod_status("j-1", {{"phase", "Failed"},
                                   {"reason", "Terminated"},
                                   {"message", "Pod was terminated in response to imminent node shutdown."}});
  ASSERT_TRUE(cluster.runs(1));
  EXPECT_EQ(cluster.status().last_failure->cause, "NodeShutdown");
  EXPECT_EQ(cluster.status().restarts.disruptions, 1);
}

FIELD_REPORT(AnExitCodeThatIsNotRetriedFailsAtOnceAndNeverSaysRestarting) {
  ASSERT_TRUE(cluster.submit(2, with_config()));
  ASSERT_TRUE(cluster.runs());
  cluster.end("j-1", 2, "no such key: lerning_rate");
  ASSERT_TRUE(cluster.until_phase("Failed"));
  EXPECT_EQ(cluster.reason(kConditionFailed), "BadInput");
  EXPECT_EQ(cluster.status().attempt, 0);
  EXPECT_EQ(find_condition(cluster.status(), kConditionRestarting), nullptr);
}

FIELD_REPORT(TheBackoffLimitCountsReplacedPodsOverRestartsOfTheOperator) {
  ASSERT_TRUE(cluster.submit(2, {{"runPolicy", {{"backoffLimit", 2}}}}));
  for (int64_t attempt = 0; attempt < 3; ++attempt) {
    ASSERT_TRUE(cluster.runs(attempt)) << attempt;
    cluster.end("j-0", 1);
    cluster.restart_operator();
  }
  ASSERT_TRUE(cluster.until_phase("Failed"));
  EXPECT_EQ(cluster.reason(kConditionFailed), "BackoffLimitExceeded");
  EXPECT_EQ(cluster.status().restarts.counted, 2);
}

FIELD_REPORT(AFailedJobThatIsReconciledAgainStaysFailedAndItsBudgetIsNotReset) {
  ASSERT_TRUE(cluster.submit(2, {{"runPolicy", {{"backoffLimit", 1}}}}));
  for (int64_t attempt = 0; attempt < 2; ++attempt) {
    ASSERT_TRUE(cluster.runs(attempt));
    cluster.end("j-0", 1);
  }
  ASSERT_TRUE(cluster.until_phase("Failed"));
  const TrainingJobStatus before = cluster.status();
  cluster.restart_operator();
  ASSERT_TRUE(cluster.patch({{"suspend", true}}));
  cluster.let_pass(1min);
  ASSERT_TRUE(cluster.patch({{"suspend", false}, {"runPolicy", {{"activeDeadlineSeconds", 99999}}}}));
  ASSERT_TRUE(cluster.until(
      [&] { return cluster.status().observed_generation == cluster.job()["metadata"]["generation"]; }));
  cluster.let_pass(10min);
  EXPECT_EQ(cluster.phase(), "Failed");
  EXPECT_EQ(cluster.status().restarts, before.restarts);
  EXPECT_EQ(cluster.status().attempt, before.attempt);
  EXPECT_EQ(cluster.status().completion_time, before.completion_time);
}

}  // namespace
}  // namespace coxswain::testing
