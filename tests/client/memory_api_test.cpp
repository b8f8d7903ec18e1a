// What only MemoryApi lets a test do: compact history, send bookmarks, hold the clock.
#include "operator/client/memory_api.h"

#include <gtest/gtest.h>

#include "operator/client/faulty_api.h"
#include "operator/client/reflector.h"
#include "tests/client/objects.h"

namespace coxswain {
namespace {

using namespace resources;
constexpr char kNs[] = "ns";

class MemoryApiTest : public ::testing::Test {
 protected:
  TimePoint now_ = TimePoint(std::chrono::hours(1000));
  MemoryApi api_{[this] { return now_; }};

  void make(const std::string& name) { ASSERT_TRUE(api_.create(kConfigMaps, kNs, a_config_map(name), {})); }
};

TEST_F(MemoryApiTest, AWatchFromBeforeTheCompactionGets410AndEnds) {
  const std::string old = api_.list(kConfigMaps, kNs, {})->resource_version;
  make("a");
  api_.compact();
  auto watch = api_.watch(kConfigMaps, kNs, {"", old, true, {}});
  ASSERT_TRUE(watch);
  const auto event = (*watch)->next(std::chrono::milliseconds(0));
  ASSERT_TRUE(event);
  EXPECT_EQ(event->type, WatchEventType::kError);
  EXPECT_EQ(event->object["code"], 410);
  EXPECT_TRUE((*watch)->ended());
}

TEST_F(MemoryApiTest, ABookmarkMovesOnlyTheVersion) {
  const std::string from = api_.list(kConfigMaps, kNs, {})->resource_version;
  auto with = api_.watch(kConfigMaps, kNs, {"", from, true, {}});
  auto without = api_.watch(kConfigMaps, kNs, {"", from, false, {}});
  ASSERT_TRUE(api_.create(kPods, kNs, a_pod("p"), {}));  // another kind: no event here, but the version moves
  api_.send_bookmarks();
  const auto event = (*with)->next(std::chrono::milliseconds(0));
  ASSERT_TRUE(event);
  EXPECT_EQ(event->type, WatchEventType::kBookmark);
  EXPECT_EQ(event->object["metadata"]["resourceVersion"], api_.list(kConfigMaps, kNs, {})->resource_version);
  EXPECT_FALSE((*without)->next(std::chrono::milliseconds(0)));
}

TEST_F(MemoryApiTest, DeletionTimestampIsTheEndOfTheGrace) {
  ASSERT_TRUE(api_.create(kPods, kNs, a_pod("p"), {}));
  ASSERT_TRUE(api_.bind_pod(kNs, "p", "node"));
  DeleteOptions options;
  options.grace_period_seconds = 60;
  const auto removed = api_.remove(kPods, kNs, "p", options);
  ASSERT_TRUE(removed);
  EXPECT_EQ((*removed)["metadata"]["deletionTimestamp"], "1970-02-11T16:01:00Z");
  options.grace_period_seconds = 90;
  EXPECT_EQ((*api_.remove(kPods, kNs, "p", options))["metadata"]["deletionGracePeriodSeconds"], 60)
      << "a later delete doesn't lengthen it";
  options.grace_period_seconds = 10;
  EXPECT_EQ((*api_.remove(kPods, kNs, "p", options))["metadata"]["deletionGracePeriodSeconds"], 10);
}

TEST_F(MemoryApiTest, APodIsBoundOnce) {
  ASSERT_TRUE(api_.create(kPods, kNs, a_pod("p"), {}));
  ASSERT_TRUE(api_.bind_pod(kNs, "p", "node"));
  EXPECT_TRUE(api_.bind_pod(kNs, "p", "other").error().conflict());
}

TEST_F(MemoryApiTest, AChildOfAnOwnerThatIsGoneIsCollected) {
  const auto job = api_.create(kTrainingJobs, kNs, a_training_job("j"), {});
  ASSERT_TRUE(job) << job.error().message;
  ASSERT_TRUE(api_.remove(kTrainingJobs, kNs, "j", {}));
  EXPECT_TRUE(api_.create(kPods, kNs, owned_by(a_pod("late"), *job), {})) << "the answer is still 201";
  EXPECT_FALSE(api_.get(kPods, kNs, "late"));
}

TEST_F(MemoryApiTest, RestoreKeepsUidAndStatus) {
  Json job = *api_.create(kTrainingJobs, kNs, a_training_job("j"), {});
  job["status"] = {{"attempt", 3}};
  MemoryApi other;
  other.restore(kTrainingJobs, job);
  const auto read = other.get(kTrainingJobs, kNs, "j");
  ASSERT_TRUE(read);
  EXPECT_EQ((*read)["metadata"]["uid"], job["metadata"]["uid"]);
  EXPECT_EQ((*read)["status"]["attempt"], 3);
}

// --- Reflector
// ---------------------------------------------------------------------------------------------------

class ReflectorTest : public MemoryApiTest {
 protected:
  FaultyApi faulty_{api_, [this](const ApiCall& call) { return script_ ? script_(call) : std::nullopt; }};
  FaultyApi::Script script_;
  std::vector<std::string> changes_;
  Reflector reflector_{faulty_,
                       kConfigMaps,
                       kNs,
                       "",
                       [this] { return now_; },
                       [this](const Json& before, const Json& after) {
                         const std::string name = (after.is_null() ? before : after)["metadata"]["name"];
                         changes_.push_back((before.is_null() ? "+" : after.is_null() ? "-" : "~") + name);
                       },
                       [] {}};
};

TEST_F(ReflectorTest, FollowsWhatHappens) {
  make("a");
  reflector_.poll();
  EXPECT_TRUE(reflector_.filled());
  make("b");
  ASSERT_TRUE(api_.remove(kConfigMaps, kNs, "a", {}));
  EXPECT_EQ(reflector_.poll(), TimePoint::max());
  EXPECT_EQ(changes_, (std::vector<std::string>{"+a", "+b", "-a"}));
}

TEST_F(ReflectorTest, ListsAgainAfter410AndMissesNothing) {
  make("a");
  make("b");
  reflector_.poll();
  changes_.clear();
  api_.end_watches(true);
  ASSERT_TRUE(api_.remove(kConfigMaps, kNs, "a", {}));
  make("c");
  reflector_.poll();
  EXPECT_EQ(changes_, (std::vector<std::string>{"+c", "-a"})) << "and nothing of b, which is as it was";
}

TEST_F(ReflectorTest, GoesOnFromTheLastVersionWhenAStreamJustEnds) {
  make("a");
  reflector_.poll();
  api_.end_watches(false);
  make("b");
  faulty_.forget_calls();
  reflector_.poll();
  EXPECT_EQ(changes_, (std::vector<std::string>{"+a", "+b"}));
  ASSERT_EQ(faulty_.calls().size(), 1U);
  EXPECT_EQ(faulty_.calls()[0].verb, Verb::kWatch);
}

TEST_F(ReflectorTest, AWatchRefusedWith410IsListedAgain) {
  make("a");
  reflector_.poll();
  api_.end_watches(false);
  script_ = [](const ApiCall& call) -> std::optional<ApiFault> {
    if (call.verb != Verb::kWatch) return std::nullopt;
    return ApiFault{{410, "Expired", "too old", std::nullopt}, false};
  };
  TimePoint next = reflector_.poll();
  EXPECT_GT(next, now_) << "not at once";
  script_ = {};
  make("b");
  now_ = next;
  faulty_.forget_calls();
  reflector_.poll();
  EXPECT_EQ(faulty_.calls()[0].verb, Verb::kList);
  EXPECT_EQ(changes_.back(), "+b");
}

TEST_F(ReflectorTest, BacksOffFromAServerInTrouble) {
  script_ = [](const ApiCall&) { return ApiFault{{503, "ServiceUnavailable", "down", std::nullopt}, false}; };
  int calls = 0;
  const TimePoint end = now_ + std::chrono::minutes(5);
  while (now_ < end) {
    now_ = reflector_.poll();
    ++calls;
  }
  EXPECT_LE(calls, 20);
  EXPECT_FALSE(reflector_.filled());
}

TEST_F(ReflectorTest, AStreamThatEndsAtOnceIsNoTightLoop) {
  reflector_.poll();
  script_ = [this](const ApiCall& call) -> std::optional<ApiFault> {
    if (call.verb == Verb::kWatch) api_.end_watches(false);
    return std::nullopt;
  };
  faulty_.forget_calls();
  for (int i = 0; i < 100; ++i) {
    api_.end_watches(false);
    reflector_.poll();
  }
  EXPECT_LE(faulty_.calls().size(), 110U);
}

// --- FaultyApi
// ---------------------------------------------------------------------------------------------------

TEST_F(MemoryApiTest, ADeadCallerLeavesNoTrace) {
  FaultyApi faulty(api_);
  faulty.die_after_writes(1);
  EXPECT_TRUE(faulty.create(kConfigMaps, kNs, a_config_map("a"), {}));
  EXPECT_FALSE(faulty.dead());
  EXPECT_EQ(faulty.create(kConfigMaps, kNs, a_config_map("b"), {}).error().code, 0);
  EXPECT_TRUE(faulty.dead());
  EXPECT_FALSE(faulty.get(kConfigMaps, kNs, "a"));
  EXPECT_FALSE(api_.get(kConfigMaps, kNs, "b"));
}

TEST_F(MemoryApiTest, ALostAnswerIsAWriteThatHappened) {
  FaultyApi faulty(api_, [](const ApiCall&) { return ApiFault{{0, "", "lost", std::nullopt}, true}; });
  EXPECT_FALSE(faulty.create(kConfigMaps, kNs, a_config_map("a"), {}));
  EXPECT_TRUE(api_.get(kConfigMaps, kNs, "a"));
}

}  // namespace
}  // namespace coxswain
