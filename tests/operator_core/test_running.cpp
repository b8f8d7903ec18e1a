// A running gang that has lost its Service or ConfigMap runs on: what is missing is made again with measure,
// and what keeps it from being made is said in the condition Running.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/operator_core/harness.h"

namespace coxswain::testing {
namespace {

using namespace std::chrono_literals;

constexpr char kAtRest[] = "All pods of the attempt run.";

World without_service() {
  World world("{nodes: 2}");
  world.start();
  world.has_service = false;
  return world;
}

int64_t count(const World& world, const std::string& reason) {
  return std::count_if(world.events.begin(), world.events.end(),
                       [&](const Event& event) { return event.reason == reason; });
}

bool creates_something(const Plan& plan) {
  return std::any_of(plan.actions.begin(), plan.actions.end(),
                     [](const Action& action) { return std::holds_alternative<CreateChild>(action); });
}

TEST(RunningGang, WhatItHasLostIsMadeAgain) {
  World world("{nodes: 2, config: {a: 1}}");
  world.start();
  EXPECT_EQ(world.said(kConditionRunning), kAtRest);
  world.has_service = false;
  world.config_maps.clear();
  world.settle();
  EXPECT_TRUE(world.has_service);
  EXPECT_EQ(world.config_maps, std::set<int64_t>{0});
  EXPECT_EQ(world.phase(), "Running");
  EXPECT_EQ(world.said(kConditionRunning), kAtRest) << "nobody is told of what lasted for a moment";
}

TEST(RunningGang, AServiceWhoseNameIsTakenIsSaidOnceAndStopsNothing) {
  World world = without_service();
  world.conflicts = {{"Service", "j"}};
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(creates_something(world.pass()));
    EXPECT_EQ(world.requeue_after, world.settings.name_conflict_retry);
    world.advance(30s);
  }
  EXPECT_EQ(world.phase(), "Running");
  EXPECT_FALSE(world.is(kConditionStalled));
  EXPECT_EQ(world.said(kConditionRunning),
            "All pods of the attempt run. A Service named j exists and is not this job's. Delete it, or give "
            "the job another "
            "name. The pods run on meanwhile.");
  EXPECT_EQ(count(world, "NameConflict"), 1);
  world.conflicts.clear();
  world.pass();
  EXPECT_TRUE(world.has_service);
  world.settle();
  EXPECT_EQ(world.said(kConditionRunning), kAtRest);
}

TEST(RunningGang, TryingAgainSaysNothingNew) {
  World world = without_service();
  world.conflicts = {{"Service", "j"}};
  world.pass();
  world.conflicts.clear();  // as the controller does when it is time
  const Plan again = world.plan();
  EXPECT_TRUE(creates_something(again));
  EXPECT_FALSE(again.status);
  EXPECT_TRUE(again.events.empty());
}

// Whatever the answer: a 422 too, which before the start would have ended the job.
TEST(RunningGang, AServiceThatIsRefusedIsTriedAgainWithMeasureAndStopsNothing) {
  for (const int code : {403, 422, 429, 500}) {
    SCOPED_TRACE(code);
    World world = without_service();
    int tries = 0;
    for (int second = 0; second < 1200; ++second) {
      if (creates_something(world.plan())) {
        ++tries;
        world.refuse("something no plugin of Kubernetes says", code, "j");
        world.pass();
      }
      world.advance(1s);
    }
    EXPECT_GE(tries, 8);
    EXPECT_LE(tries, 15);
    EXPECT_EQ(world.phase(), "Running");
    EXPECT_FALSE(world.is(kConditionFailed) || world.is(kConditionStalled));
    EXPECT_NE(world.said(kConditionRunning).find("something no plugin of Kubernetes says"),
              std::string::npos);
    EXPECT_NE(world.said(kConditionRunning).find("The pods run on meanwhile."), std::string::npos);
    const auto warnings = std::count_if(world.events.begin(), world.events.end(), [](const Event& event) {
      return event.message.ends_with("The pods run on meanwhile.");
    });
    EXPECT_EQ(warnings, 1);
  }
}

}  // namespace
}  // namespace coxswain::testing
