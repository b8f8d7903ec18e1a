// What only MemoryApi lets a test do: compact history, send bookmarks, hold the clock.
#include "operator/client/memory_api.h"

#include <gtest/gtest.h>

#include "operator/client/faulty_api.h"
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

// --- Lists in pages, streaming lists

TEST_F(MemoryApiTest, PagesAreOfOneSnapshotUntilItIsCompacted) {
  for (const char* name : {"a", "b", "c", "d", "e"}) make(name);
  const auto first = api_.list(kConfigMaps, kNs, {.limit = 2});
  ASSERT_TRUE(first);
  EXPECT_EQ(first->items.size(), 2U);
  EXPECT_EQ(first->remaining, 3);
  make("f");
  ASSERT_TRUE(api_.remove(kConfigMaps, kNs, "c", {}));
  const auto second = api_.list(kConfigMaps, kNs, {.limit = 2, .continue_token = first->continue_token});
  ASSERT_TRUE(second);
  EXPECT_EQ(second->items[0]["metadata"]["name"], "c");
  EXPECT_EQ(second->resource_version, first->resource_version);
  const auto third = api_.list(kConfigMaps, kNs, {.limit = 2, .continue_token = second->continue_token});
  ASSERT_TRUE(third);
  EXPECT_EQ(third->items.size(), 1U);
  EXPECT_EQ(third->continue_token, "");
  api_.compact();
  const auto late = api_.list(kConfigMaps, kNs, {.limit = 2, .continue_token = second->continue_token});
  ASSERT_FALSE(late);
  EXPECT_TRUE(late.error().expired());
}

TEST_F(MemoryApiTest, AStreamingListEndsWithAnAnnotatedBookmarkAndGoesOn) {
  make("a");
  auto watch = api_.watch(kConfigMaps, kNs,
                          {.label_selector = "", .resource_version = "", .send_initial_events = true});
  ASSERT_TRUE(watch);
  EXPECT_EQ((*watch)->next({})->type, WatchEventType::kAdded);
  const auto end = (*watch)->next({});
  ASSERT_TRUE(end);
  EXPECT_EQ(end->type, WatchEventType::kBookmark);
  EXPECT_EQ(end->object["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
  EXPECT_EQ(end->object["metadata"]["resourceVersion"], api_.list(kConfigMaps, kNs, {})->resource_version);
  make("b");
  EXPECT_EQ((*watch)->next({})->object["metadata"]["name"], "b");
}

TEST_F(MemoryApiTest, OnlyMetadataWhereOnlyThatIsAskedFor) {
  make("a");
  const Json listed = api_.list(kConfigMaps, kNs, {.metadata_only = true})->items.at(0);
  EXPECT_FALSE(listed.contains("data"));
  EXPECT_EQ(listed["kind"], "PartialObjectMetadata");
  auto watch =
      api_.watch(kConfigMaps, kNs, {.label_selector = "", .resource_version = "", .metadata_only = true});
  EXPECT_EQ((*watch)->next({})->object, listed);
}

TEST_F(MemoryApiTest, AStreamEndsWhenItsTimeIsOver) {
  auto watch =
      api_.watch(kConfigMaps, kNs,
                 {.label_selector = "", .resource_version = "", .server_timeout = std::chrono::seconds(60)});
  EXPECT_FALSE((*watch)->ended());
  now_ += std::chrono::seconds(60);
  EXPECT_TRUE((*watch)->ended());
}

// --- FaultyApi

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
