#include "operator/controller/event_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "operator/client/faulty_api.h"
#include "operator/client/memory_api.h"
#include "operator/reconcile/reasons.h"

namespace coxswain {
namespace {

using namespace resources;
using ::testing::EndsWith;
using ::testing::StartsWith;
constexpr char kNs[] = "ns";

class EventWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    job_.metadata.name = "j";
    job_.metadata.namespace_name = kNs;
    job_.metadata.uid = "uid";
  }
  void publish(const std::string& reason = "Again", const std::string& words = "same words") {
    writer_.publish(job_, {EventType::kWarning, reason, words}, now_);
    writer_.flush();
  }
  std::vector<Json> events() { return api_.list(kEvents, kNs, {})->items; }
  int count(Verb verb) {
    int n = 0;
    for (const ApiCall& call : faulty_.calls()) n += call.verb == verb;
    return n;
  }

  TimePoint now_ = TimePoint(std::chrono::hours(1000) + std::chrono::milliseconds(7));
  MemoryApi api_{[this] { return now_; }};
  FaultyApi::Script script_;
  FaultyApi faulty_{api_, [this](const ApiCall& call) { return script_ ? script_(call) : std::nullopt; }};
  TrainingJob job_;
  EventWriter writer_{faulty_, {.controller = "coxswain-operator", .instance = "operator-7"}};
};

TEST_F(EventWriterTest, SaysWhatWhyWhoAndWhen) {
  publish(kEventRestarting, "rank 1 failed");
  ASSERT_EQ(events().size(), 1U);
  const Json event = events()[0];
  EXPECT_EQ(event["apiVersion"], "events.k8s.io/v1");
  EXPECT_EQ(event["kind"], "Event");
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["reason"], "Restarting");
  EXPECT_EQ(event["action"], "Restart");
  EXPECT_EQ(event["note"], "rank 1 failed");
  EXPECT_EQ(event["eventTime"], "1970-02-11T16:00:00.007000Z");
  EXPECT_EQ(event["reportingController"], "coxswain-operator");
  EXPECT_EQ(event["reportingInstance"], "operator-7");
  EXPECT_EQ(event["regarding"]["kind"], "TrainingJob");
  EXPECT_EQ(event["regarding"]["name"], "j");
  EXPECT_EQ(event["regarding"]["uid"], "uid");
  EXPECT_FALSE(event.contains("series"));
}

TEST_F(EventWriterTest, TheSameWordsAreCountedWithOneRequestEach) {
  publish();
  faulty_.forget_calls();
  now_ += std::chrono::minutes(1);
  publish();
  publish();
  EXPECT_EQ(faulty_.calls().size(), 2U);
  EXPECT_EQ(count(Verb::kMergePatch), 2);
  ASSERT_EQ(events().size(), 1U);
  EXPECT_EQ(events()[0]["series"]["count"], 3);
  EXPECT_EQ(events()[0]["series"]["lastObservedTime"], "1970-02-11T16:01:00.007000Z");
  publish("Again", "other words");
  publish("Another", "same words");
  EXPECT_EQ(events().size(), 3U);
}

TEST_F(EventWriterTest, AnotherOperatorGoesOnCounting) {
  publish();
  EventWriter next(faulty_, {});
  for (int i = 0; i < 2; ++i) next.publish(job_, {EventType::kWarning, "Again", "same words"}, now_);
  next.flush();
  ASSERT_EQ(events().size(), 1U);
  EXPECT_EQ(events()[0]["series"]["count"], 3);
  EXPECT_EQ(count(Verb::kGet), 0) << "rights to create and to patch are enough";
}

TEST_F(EventWriterTest, AnEventThatTheServerHasLetGoIsWrittenAnew) {
  publish();
  ASSERT_TRUE(api_.remove(kEvents, kNs, events()[0]["metadata"]["name"], {}));
  publish();
  ASSERT_EQ(events().size(), 1U);
  EXPECT_FALSE(events()[0].contains("series"));
}

TEST_F(EventWriterTest, LongWordsAreCutBetweenCharacters) {
  std::string umlauts;
  for (int i = 0; i < 600; ++i) umlauts += "\u00e4";
  publish("Long", umlauts);
  ASSERT_EQ(events().size(), 1U);
  const std::string note = events()[0]["note"];
  EXPECT_LE(note.size(), 1024U);
  EXPECT_GE(note.size(), 1020U);
  EXPECT_THAT(note, EndsWith("\u00e4..."));
}

// What replaces a byte that is no UTF-8 is three bytes long.
TEST_F(EventWriterTest, WordsThatAreNoTextAreReplacedBeforeTheCut) {
  publish("Odd", std::string(1000, '\xff'));
  ASSERT_EQ(events().size(), 1U);
  EXPECT_LE(events()[0]["note"].get<std::string>().size(), 1024U);
  EXPECT_THAT(events()[0]["note"].get<std::string>(), StartsWith("\uFFFD"));
}

TEST_F(EventWriterTest, WhatCannotBeWrittenIsLostAndNothingElse) {
  script_ = [](const ApiCall&) { return ApiFault{{500, "InternalError", "no", std::nullopt}, false}; };
  publish();
  EXPECT_TRUE(events().empty());
  script_ = {};
  publish("Next", "words");
  EXPECT_EQ(events().size(), 1U);
}

TEST_F(EventWriterTest, OfTooManyThatWaitTheOldestAreDropped) {
  EventWriter small(api_, {.waiting_max = 3});
  for (int i = 0; i < 5; ++i) small.publish(job_, {EventType::kNormal, "N" + std::to_string(i), "w"}, now_);
  small.flush();
  std::vector<std::string> reasons;
  for (const Json& event : events()) reasons.push_back(event["reason"]);
  EXPECT_THAT(reasons, ::testing::UnorderedElementsAre("N2", "N3", "N4"));
}

TEST_F(EventWriterTest, EveryReasonHasItsAction) {
  for (const char* reason :
       {kEventStarted, kEventResumed, kEventSuspended, kEventRunning, kEventRestarting, kEventCompleted,
        kEventFailed, kEventOverridden, kEventOutputNotKept, kEventDeleted, kEventGangReleased}) {
    EXPECT_NE(action_of(reason), "Reconcile") << reason;
  }
  EXPECT_EQ(action_of("SomethingElse"), "Reconcile");
}

// Under ThreadSanitizer too: a server that doesn't answer holds up nobody that publishes.
TEST_F(EventWriterTest, PublishingNeverWaitsAndAStopWritesTheRest) {
  std::mutex mutex;
  std::condition_variable changed;
  bool inside = false;
  bool may_go_on = false;
  script_ = [&](const ApiCall&) -> std::optional<ApiFault> {
    std::unique_lock lock(mutex);
    inside = true;
    changed.notify_all();
    changed.wait(lock, [&] { return may_go_on; });
    return std::nullopt;
  };
  EventWriter writer(faulty_, {.drain_limit = std::chrono::minutes(5)});
  std::jthread running([&](std::stop_token stop) { writer.run(stop); });
  writer.publish(job_, {EventType::kNormal, "First", "w"}, now_);
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return inside; });
  }
  for (int i = 0; i < 100; ++i) {
    writer.publish(job_, {EventType::kNormal, "N" + std::to_string(i), "w"}, now_);
  }
  running.request_stop();
  {
    std::lock_guard lock(mutex);
    may_go_on = true;
  }
  changed.notify_all();
  running.join();
  EXPECT_EQ(events().size(), 101U);
}

}  // namespace
}  // namespace coxswain
