// A quota lets only a part of a gang be created; policies refuse pods.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/parse.h"
#include "tests/operator_field/simulated_cluster.h"

namespace coxswain::testing {
namespace {

using namespace resources;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

ApiFault refused(const std::string& message) {
  return {{403, "Forbidden", message, std::nullopt}, false};
}

TEST(Quota, LetsOnlyAPartOfTheGangBeCreatedSaysSoReleasesItAfterABoundAndBacksOff) {
  SimulatedCluster cluster;
  cluster.set_quota(2);
  ASSERT_TRUE(cluster.submit("j", 4));
  cluster.settle();
  EXPECT_EQ(cluster.pods().size(), 2U);
  EXPECT_EQ(cluster.reason(kConditionReconciling), "QuotaExceeded");
  EXPECT_THAT(cluster.said(kConditionReconciling), HasSubstr("Only 2 of 4 pods could be created"));
  EXPECT_THAT(cluster.said(kConditionReconciling), HasSubstr("exceeded quota: gpus"));
  const TimePoint start = cluster.now;
  ASSERT_TRUE(cluster.until([&] { return cluster.pods().empty(); }, 5min));
  EXPECT_GE(cluster.now - start, 60s);
  EXPECT_LE(cluster.now - start, 125s);
  EXPECT_TRUE(cluster.has_event("GangReleased"));
  EXPECT_EQ(cluster.status().restarts, RestartsStatus());
  cluster.faulty->forget_calls();
  cluster.pass_time(20min);
  EXPECT_LE(cluster.faulty->calls().size(), 200U) << "with back-off";
  cluster.set_quota(4);
  EXPECT_TRUE(cluster.until([&] { return cluster.phase() == "Running"; }, 10min));
}

TEST(Quota, ThatNeverFitsEndsAtTheStartupDeadline) {
  SimulatedCluster cluster;
  cluster.set_quota(2);
  ASSERT_TRUE(cluster.submit("j", 4, {{"runPolicy", {{"backoffLimit", 0}}}}));
  const TimePoint start = cluster.now;
  ASSERT_TRUE(cluster.until([&] { return cluster.phase() == "Failed"; }, 2h));
  EXPECT_GE(cluster.now - start, 1800s);
  EXPECT_LE(cluster.now - start, 1805s);
  EXPECT_THAT(cluster.said(kConditionFailed), HasSubstr("startupDeadlineSeconds (1800 s)"));
  EXPECT_THAT(cluster.said(kConditionFailed), HasSubstr("exceeded quota"));
  cluster.pass_time(1min);
  EXPECT_TRUE(cluster.pods().empty());
}

// Each of the two gets half of what it needs, and neither what it needs.
TEST(Quota, TwoJobsThatEachGetHalfDoNotDeadlock) {
  int restarts_of_the_test = 0;
  for (const char* other : {"k", "l", "m", "n", "o", "p"}) {
    SCOPED_TRACE(other);
    SimulatedCluster cluster;
    cluster.set_quota(4);
    bool first_round = true;
    cluster.script = [&](const ApiCall& call) -> std::optional<ApiFault> {
      const bool second_half = call.name.ends_with("-2") || call.name.ends_with("-3");
      if (!first_round || call.verb != Verb::kCreate || call.plural != "pods" || !second_half)
        return std::nullopt;
      return refused("exceeded quota: gpus");
    };
    ASSERT_TRUE(cluster.submit("j", 4));
    ASSERT_TRUE(cluster.submit(other, 4));
    cluster.settle();
    ASSERT_EQ(cluster.pods("j").size(), 2U);
    ASSERT_EQ(cluster.pods(other).size(), 2U);
    first_round = false;
    const auto runs = [&](const std::string& job) { return cluster.phase(job) == "Running"; };
    ASSERT_TRUE(cluster.until([&] { return runs("j") || runs(other); }, 10min));
    const std::string first = runs("j") ? "j" : other;
    const std::string second = first == "j" ? other : "j";
    cluster.end_all(first, 0);
    ASSERT_TRUE(cluster.until([&] { return runs(second); }, 15min));
    ++restarts_of_the_test;
  }
  EXPECT_EQ(restarts_of_the_test, 6);
}

TEST(Admission, PodSecurityStallsTheJobWithItsWordsAndAChangedTemplateIsTriedAtOnce) {
  SimulatedCluster cluster;
  cluster.script = [](const ApiCall& call) -> std::optional<ApiFault> {
    if (call.verb != Verb::kCreate || call.plural != "pods") return std::nullopt;
    return refused(
        R"(pods "j-0" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true)");
  };
  ASSERT_TRUE(cluster.submit("j", 2));
  cluster.settle();
  EXPECT_EQ(cluster.phase(), "Stalled");
  EXPECT_EQ(cluster.reason(kConditionStalled), "PodSecurityViolation");
  EXPECT_THAT(cluster.said(kConditionStalled), HasSubstr("runAsNonRoot"));
  EXPECT_TRUE(cluster.has_event("PodSecurityViolation"));
  cluster.faulty->forget_calls();
  cluster.pass_time(20min);
  EXPECT_LE(cluster.count(Verb::kCreate, "pods"), 15) << "with back-off";
  EXPECT_LE(cluster.count(Verb::kUpdateStatus), 2) << "nothing new is said";
  ASSERT_TRUE(cluster.api.merge_patch(kTrainingJobs, kNs, "j", {{"spec", {{"suspend", true}}}}, {}));
  cluster.settle();
  EXPECT_EQ(cluster.phase(), "Suspended");
  cluster.script = {};
  ASSERT_TRUE(cluster.api.merge_patch(kTrainingJobs, kNs, "j", {{"spec", {{"suspend", false}}}}, {}));
  cluster.settle();
  EXPECT_EQ(cluster.phase(), "Running") << "what the last spec was refused does not hold this one up";
}

TEST(Admission, ThrottlingHonoursRetryAfter) {
  SimulatedCluster cluster;
  cluster.script = [](const ApiCall& call) -> std::optional<ApiFault> {
    if (call.verb != Verb::kCreate || call.plural != "pods") return std::nullopt;
    return ApiFault{{429, "TooManyRequests", "too many requests", 30s}, false};
  };
  ASSERT_TRUE(cluster.submit("j", 1));
  cluster.settle();
  EXPECT_EQ(cluster.reason(kConditionReconciling), "Throttled");
  cluster.script = {};
  cluster.pass_time(28s);
  EXPECT_TRUE(cluster.pods().empty());
  cluster.pass_time(3s);
  EXPECT_EQ(cluster.phase(), "Running");
}

}  // namespace
}  // namespace coxswain::testing
