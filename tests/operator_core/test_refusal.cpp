// What the API server refuses: said in plain words, told apart, tried again with measure, and never a part of
// a gang kept for ever.
#include <gtest/gtest.h>

#include "operator/reconcile/refusal.h"
#include "tests/operator_core/harness.h"

namespace coxswain::testing {
namespace {

using namespace std::chrono_literals;

struct Case {
  const char* message;  // as Kubernetes' admission plugins write it
  int code;
  const char* reason;
  Outlook outlook;
};

constexpr Case kCases[] = {
    {R"(pods "j-0" is forbidden: exceeded quota: gpus, requested: pods=1, used: pods=4, limited: pods=4)",
     403, "QuotaExceeded", Outlook::kPasses},
    {R"(pods "j-0" is forbidden: failed quota: q: must specify limits.cpu for: trainer)", 403,
     "QuotaNeedsResources", Outlook::kNeedsChange},
    {R"(pods "j-0" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true)", 403,
     "PodSecurityViolation", Outlook::kNeedsChange},
    {R"(pods "j-0" is forbidden: [maximum cpu usage per Container is 1, but limit is 2])", 403,
     "LimitRangeViolation", Outlook::kNeedsChange},
    {R"(pods "j-0" is forbidden: no PriorityClass with name high was found)", 403, "ClassNotFound",
     Outlook::kNeedsChange},
    {R"(pods "j-0" is forbidden: pod rejected: RuntimeClass "gvisor" not found)", 403, "ClassNotFound",
     Outlook::kNeedsChange},
    {R"(pods "j-0" is forbidden: pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead)",
     403, "AdmissionDenied", Outlook::kNeedsChange},
    {R"(pods "j-0" is forbidden: the integer value of priority (7) must not be provided in pod spec)", 403,
     "AdmissionDenied", Outlook::kNeedsChange},
    {R"(pods "j-0" is forbidden: insufficient quota to consume: requests.nvidia.com/gpu)", 403,
     "QuotaNeedsResources", Outlook::kNeedsChange},
    {R"(pods "j-0" is forbidden: error looking up service account n/s: serviceaccount "s" not found)", 403,
     "ServiceAccountNotFound", Outlook::kPasses},
    {R"(pods "j-0" is forbidden: unable to create new content in namespace n because it is being terminated)",
     403, "NamespaceTerminating", Outlook::kPasses},
    {R"(pods is forbidden: User "system:serviceaccount:c:o" cannot create resource "pods" in API group "")",
     403, "OperatorLacksRights", Outlook::kNeedsChange},
    {R"(admission webhook "policy.example.com" denied the request: no team label)", 400, "AdmissionDenied",
     Outlook::kNeedsChange},
    {R"(pods "j-0" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no)", 422,
     "AdmissionDenied", Outlook::kNeedsChange},
    {R"(Internal error occurred: failed calling webhook "w": connection refused)", 500, "ServerError",
     Outlook::kPasses},
    {"the server is currently unable to handle the request", 503, "ServerError", Outlook::kPasses},
    {"too many requests", 429, "Throttled", Outlook::kPasses},
    {R"(Pod "j-0" is invalid: spec.containers[0].image: Required value)", 422, "InvalidTemplate",
     Outlook::kNever},
    {"something no plugin of Kubernetes says", 403, "CreateRefused", Outlook::kPasses},
};

TEST(Refusal, IsUnderstoodByTheWordsOfTheAdmissionPlugins) {
  for (const Case& one : kCases) {
    const Rejection rejection{"Pod", "j-0", one.message, one.code == 422 || one.code == 400, one.code};
    const Refusal refusal = understand(rejection);
    EXPECT_EQ(refusal.reason, one.reason) << one.message;
    EXPECT_EQ(refusal.outlook, one.outlook) << one.message;
    EXPECT_NE(refusal.sentence.find(one.message), std::string::npos) << "the server's sentence is kept";
  }
}

TEST(Refusal, WhatPassesIsWaitedForWithAReasonAndWithoutStalling) {
  World world;
  world.refuse("exceeded quota: gpus");
  world.settle();
  EXPECT_EQ(world.names(), "");
  EXPECT_EQ(world.reason(kConditionReconciling), "QuotaExceeded");
  EXPECT_TRUE(world.is(kConditionReconciling));
  EXPECT_FALSE(world.is(kConditionStalled) || world.is(kConditionFailed));
  EXPECT_TRUE(world.has_event("QuotaExceeded"));
  world.accept();
  world.settle();
  EXPECT_EQ(world.names(), "j-0@0");
}

TEST(Refusal, WhatNeedsAChangeStallsTheJobAndSaysWhatToDo) {
  World world;
  world.refuse(R"(violates PodSecurity "restricted:latest": runAsNonRoot != true)");
  world.settle();
  EXPECT_TRUE(world.is(kConditionStalled));
  EXPECT_FALSE(world.is(kConditionFailed));
  EXPECT_EQ(world.reason(kConditionStalled), "PodSecurityViolation");
  EXPECT_NE(world.said(kConditionStalled).find("runAsNonRoot"), std::string::npos);
  EXPECT_NE(world.said(kConditionStalled).find("spec.template"), std::string::npos);
  world.accept();  // somebody changed the namespace's label
  world.settle();
  EXPECT_FALSE(world.is(kConditionStalled));
  EXPECT_EQ(world.names(), "j-0@0");
}

TEST(Refusal, WhatNeedsAChangeAndGetsNoneFailsAtTheStartupDeadlineWithoutARetry) {
  World world("{runPolicy: {startupDeadlineSeconds: 100, backoffLimit: 3}}");
  world.refuse(R"(violates PodSecurity "restricted:latest": runAsNonRoot != true)");
  world.settle();
  world.advance(100s);
  world.settle();
  EXPECT_EQ(world.reason(kConditionFailed), "StartupDeadlineExceeded");
  EXPECT_NE(world.said(kConditionFailed).find("runAsNonRoot"), std::string::npos);
}

TEST(Refusal, ItsEventComesOnce) {
  World world;
  for (int i = 0; i < 5; ++i) {
    world.refuse("exceeded quota: gpus");
    world.settle();
    world.advance(10s);
  }
  EXPECT_EQ(std::count_if(world.events.begin(), world.events.end(),
                          [](const Event& event) { return event.reason == "QuotaExceeded"; }),
            1);
}

// --- Trying again
// --------------------------------------------------------------------------------------------

Rejection refused(int64_t times, std::optional<Duration> retry_after = std::nullopt) {
  return {"Pod", "j-0", "exceeded quota", false, 403, TimePoint(1h), times, retry_after};
}

TEST(Refusal, TheDelayDoublesToItsBoundAndIsShortWhileAPartOfTheGangIsHeld) {
  const Settings settings;
  for (int64_t times = 1; times < 40; ++times) {
    const Duration plain = std::min<Duration>(1s * (int64_t{1} << std::min<int64_t>(times - 1, 20)), 5min);
    const Duration delay = creation_due(refused(times), false, "u", settings) - TimePoint(1h);
    EXPECT_GE(delay, plain);
    EXPECT_LE(delay, plain + plain / 4);
    EXPECT_LE(creation_due(refused(times), true, "u", settings) - TimePoint(1h), 19s);
  }
}

TEST(Refusal, RetryAfterIsHonoured) {
  const Settings settings;
  EXPECT_EQ(creation_due(refused(1, 2min), false, "u", settings), TimePoint(1h) + 2min);
  EXPECT_EQ(creation_due(refused(1, 2min), true, "u", settings), TimePoint(1h) + 2min);
}

TEST(Refusal, NothingIsCreatedBeforeItIsDue) {
  World world;
  world.refuse("exceeded quota: gpus");
  world.pass();
  world.settle();
  EXPECT_EQ(world.names(), "");
  ASSERT_TRUE(world.requeue_after);
  world.advance(*world.requeue_after);
  EXPECT_FALSE(world.pass().actions.empty());
}

// --- A part of a gang
// ----------------------------------------------------------------------------------------

World half_a_gang() {
  World world("{nodes: 2, runPolicy: {startupDeadlineSeconds: 1000}}");
  const Plan plan = world.plan();
  world.apply(plan, static_cast<int>(plan.actions.size()));  // all but the last pod
  world.refuse("exceeded quota: gpus", 403, "j-1");
  world.pass();
  return world;
}

TEST(PartialGang, SaysHowMuchOfItIsThere) {
  const World world = half_a_gang();
  EXPECT_EQ(world.names(), "j-0@0");
  EXPECT_EQ(world.reason(kConditionReconciling), "QuotaExceeded");
  EXPECT_EQ(world.said(kConditionReconciling).rfind("Only 1 of 2 pods could be created.", 0), 0U);
}

TEST(PartialGang, IsReleasedAfterABoundCountedNowhere) {
  World world = half_a_gang();
  const TimePoint start = world.now;
  while (world.names() == "j-0@0" && world.now < start + 10min) {
    world.refuse("exceeded quota: gpus", 403, "j-1");
    world.pass();
    world.advance(1s);
  }
  EXPECT_GE(world.now - start, 60s);
  EXPECT_LE(world.now - start, 125s);
  EXPECT_EQ(world.names(), "j-0@0!");
  EXPECT_EQ(world.job.status.attempt, 1);
  EXPECT_EQ(world.job.status.restarts, RestartsStatus());
  EXPECT_FALSE(world.job.status.last_failure);
  EXPECT_TRUE(world.has_event("GangReleased"));
  world.finish_deletions();
  world.advance(1h);
  world.accept();
  world.job.status.startup_time = world.now;
  world.settle();
  EXPECT_EQ(world.names(), "j-0@1 j-1@1");
}

World half_a_gang_and_a_taken_name() {
  World world("{nodes: 2, runPolicy: {startupDeadlineSeconds: 1000}}");
  const Plan plan = world.plan();
  world.apply(plan, static_cast<int>(plan.actions.size()));  // all but the last pod
  world.conflicts = {{"Pod", "j-1"}};
  world.pass();
  return world;
}

TEST(PartialGang, IsReleasedAfterABoundAlsoWhereANameIsTaken) {
  World world = half_a_gang_and_a_taken_name();
  EXPECT_EQ(world.reason(kConditionStalled), "NameConflict");
  EXPECT_TRUE(world.has_event("NameConflict"));
  const TimePoint start = world.now;
  while (world.names() == "j-0@0" && world.now < start + 10min) {
    world.pass();
    world.advance(1s);
  }
  EXPECT_GE(world.now - start, 60s);
  EXPECT_LE(world.now - start, 125s);
  EXPECT_EQ(world.names(), "j-0@0!");
  EXPECT_EQ(world.job.status.restarts, RestartsStatus());
  EXPECT_TRUE(world.has_event("GangReleased"));
  EXPECT_EQ(world.phase(), "Stalled");
}

TEST(PartialGang, TheStartupDeadlineNamesTheTakenName) {
  World world = half_a_gang_and_a_taken_name();
  world.job.status.startup_time = world.now - 1000s;
  world.settle();
  EXPECT_EQ(world.reason(kConditionFailed), "StartupDeadlineExceeded");
  EXPECT_NE(world.said(kConditionFailed).find("A Pod named j-1 exists and is not this job's."),
            std::string::npos)
      << world.said(kConditionFailed);
}

TEST(PartialGang, TheStartupDeadlineEndsAChainOfReleases) {
  World world = half_a_gang();
  const TimePoint start = world.now;
  int releases = 0;
  while (world.job.status.restarts.counted == 0 && world.now < start + 2h) {
    const int64_t before = world.job.status.attempt;
    world.finish_deletions();
    if (!world.pods.empty()) world.refuse("exceeded quota: gpus", 403, "j-1");
    const Plan plan = world.plan();
    const bool creates_all = plan.actions.size() > 1 && world.pods.empty();
    world.apply(plan, creates_all ? static_cast<int>(plan.actions.size()) : 1 << 20);
    if (world.pods.size() == 2) world.vanish(1);  // the quota has room for one
    releases += world.job.status.attempt > before && world.job.status.restarts.counted == 0 ? 1 : 0;
    world.advance(1s);
  }
  EXPECT_GE(releases, 3);
  EXPECT_EQ(world.cause(), "StartupDeadlineExceeded");
  EXPECT_LE(world.now - start, 1010s);
  EXPECT_NE(world.job.status.last_failure->message.find("exceeded quota"), std::string::npos);
}

TEST(PartialGang, OfTwoJobsOneGivesUpFirst) {
  const Settings settings;
  int apart = 0;
  for (int64_t attempt = 0; attempt < 20; ++attempt) {
    const Duration a = partial_gang_hold("uid-a", attempt, settings);
    const Duration b = partial_gang_hold("uid-b", attempt, settings);
    for (const Duration hold : {a, b}) {
      EXPECT_GE(hold, 60s);
      EXPECT_LE(hold, 120s);
    }
    // Further apart than it takes the other to ask again.
    if (std::chrono::abs(a - b) > 19s) ++apart;
  }
  EXPECT_GE(apart, 5);
}

}  // namespace
}  // namespace coxswain::testing
