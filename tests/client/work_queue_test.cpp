#include "operator/controller/work_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace coxswain {
namespace {

using std::chrono::seconds;

constexpr TimePoint kStart{std::chrono::hours(1)};
const WorkQueue::Key kA{"ns", "a"};
const WorkQueue::Key kB{"ns", "b"};
const WorkQueue::Key kC{"ns", "c"};

struct Counts : WorkQueueMetrics {
  void depth(size_t now) override { depth_now = now; }
  void added() override { ++adds; }
  void retried() override { ++retries; }
  void queue_duration(Duration time) override { waited = time; }
  void work_duration(Duration time) override { worked = time; }
  size_t depth_now = 0;
  int adds = 0;
  int retries = 0;
  Duration waited{};
  Duration worked{};
};

class WorkQueueTest : public ::testing::Test {
 protected:
  TimePoint now_ = kStart;
  Counts counts_;
  WorkQueue queue_{[this] { return now_; }, {seconds(1), seconds(60)}, &counts_};

  // Takes one out and is done with it.
  std::optional<WorkQueue::Key> work() {
    const auto key = queue_.try_get();
    if (key) queue_.done(*key);
    return key;
  }
};

TEST_F(WorkQueueTest, AKeyIsInItOnceAtItsEarliestTime) {
  queue_.add_at(kA, kStart + seconds(10));
  queue_.add(kA);
  queue_.add(kA);
  queue_.add_at(kA, kStart + seconds(20));
  EXPECT_LE(queue_.next_due(), kStart);
  EXPECT_EQ(work(), kA);
  now_ += std::chrono::hours(1);
  EXPECT_EQ(work(), std::nullopt) << "a pass asks anew for what is still to come";
  EXPECT_EQ(queue_.next_due(), TimePoint::max());
}

TEST_F(WorkQueueTest, NothingComesBeforeItsTime) {
  queue_.add_at(kA, kStart + seconds(2));
  queue_.add_at(kB, kStart + seconds(1));
  EXPECT_EQ(queue_.next_due(), kStart + seconds(1));
  EXPECT_EQ(work(), std::nullopt);
  now_ += seconds(1);
  EXPECT_EQ(work(), kB);
  EXPECT_EQ(work(), std::nullopt);
  now_ += seconds(1);
  EXPECT_EQ(work(), kA);
}

TEST_F(WorkQueueTest, ALaterTimeDoesNotPutAnEarlierOneOff) {
  queue_.add_at(kA, kStart + seconds(1));
  queue_.add_at(kA, kStart + seconds(5));
  now_ += seconds(1);
  EXPECT_EQ(work(), kA);
}

TEST_F(WorkQueueTest, FirstComeFirstServed) {
  queue_.add_at(kC, kStart + seconds(2));
  queue_.add(kB);
  queue_.add(kA);
  queue_.add(kB);
  now_ += seconds(3);
  EXPECT_EQ(work(), kB);
  EXPECT_EQ(work(), kA);
  EXPECT_EQ(work(), kC);
}

TEST_F(WorkQueueTest, AKeyThatIsWorkedOnIsNotHandedOutAgainButComesAfterwards) {
  queue_.add(kA);
  ASSERT_EQ(queue_.try_get(), kA);
  queue_.add(kA);
  queue_.add(kA);
  EXPECT_EQ(queue_.try_get(), std::nullopt);
  queue_.done(kA);
  EXPECT_EQ(work(), kA);
  EXPECT_EQ(work(), std::nullopt);
}

TEST_F(WorkQueueTest, ATimeThatIsAskedForMeanwhileIsKept) {
  queue_.add(kA);
  ASSERT_EQ(queue_.try_get(), kA);
  queue_.add_at(kA, kStart + seconds(1));
  now_ += seconds(2);
  EXPECT_EQ(queue_.try_get(), std::nullopt) << "still worked on";
  queue_.done(kA);
  EXPECT_EQ(work(), kA);
}

TEST_F(WorkQueueTest, BackOffGrowsForEachKeyOnItsOwnUntilItIsForgotten) {
  Duration last{};
  for (int i = 0; i < 6; ++i) {
    const Duration next = queue_.next_backoff(kA);
    EXPECT_GT(next, last);
    EXPECT_GE(next, seconds(1 << i));
    last = next;
  }
  for (int i = 0; i < 60; ++i) EXPECT_LE(queue_.next_backoff(kA), seconds(72)) << "60 s and a fifth";
  EXPECT_LE(queue_.next_backoff(kB), std::chrono::milliseconds(1200));
  queue_.forget(kA);
  EXPECT_LE(queue_.next_backoff(kA), std::chrono::milliseconds(1200));
}

TEST_F(WorkQueueTest, ABadKeyDoesNotStarveOthers) {
  int of_bad = 0;
  int of_good = 0;
  queue_.add(kA);
  for (int second = 0; second < 600; ++second, now_ += seconds(1)) {
    queue_.add(kB);
    while (const auto key = queue_.try_get()) {
      if (*key == kA) {
        ++of_bad;
        queue_.add_rate_limited(kA);
      } else {
        ++of_good;
      }
      queue_.done(*key);
    }
  }
  EXPECT_EQ(of_good, 600);
  EXPECT_LE(of_bad, 20);
  EXPECT_GE(of_bad, 10) << "it is tried again, too";
}

TEST_F(WorkQueueTest, AKeyThatWakesItselfGoesToTheEnd) {
  queue_.add(kA);
  queue_.add(kB);
  queue_.add(kC);
  std::string order;
  for (int i = 0; i < 6; ++i) {
    const auto key = queue_.try_get();
    queue_.add(*key);
    queue_.done(*key);
    order += key->second;
  }
  EXPECT_EQ(order, "abcabc");
}

TEST_F(WorkQueueTest, TellsHowItGoes) {
  queue_.add(kA);
  queue_.add(kA);
  queue_.add_rate_limited(kB);
  EXPECT_EQ(counts_.adds, 1);
  EXPECT_EQ(counts_.depth_now, 1U);
  EXPECT_EQ(counts_.retries, 1);
  now_ += seconds(5);
  ASSERT_EQ(queue_.try_get(), kA);
  EXPECT_EQ(counts_.waited, seconds(5));
  EXPECT_EQ(counts_.adds, 2) << "B's time has come";
  now_ += seconds(3);
  queue_.done(kA);
  EXPECT_EQ(counts_.worked, seconds(3));
}

TEST_F(WorkQueueTest, ShutDownHandsOutWhatIsDueAndNothingElse) {
  queue_.add(kA);
  queue_.add_at(kB, kStart + seconds(1));
  queue_.shut_down();
  queue_.add(kC);
  EXPECT_EQ(queue_.get(), kA);
  EXPECT_FALSE(queue_.wait_until_drained(std::chrono::milliseconds(0)));
  queue_.done(kA);
  now_ += seconds(2);
  EXPECT_EQ(queue_.get(), std::nullopt);
  EXPECT_TRUE(queue_.wait_until_drained(std::chrono::milliseconds(0)));
}

TEST_F(WorkQueueTest, WhatWaitsCanBeDropped) {
  queue_.add(kA);
  queue_.add(kB);
  ASSERT_EQ(queue_.try_get(), kA);
  queue_.add(kA);
  queue_.shut_down();
  queue_.drop_waiting();
  queue_.done(kA);
  EXPECT_EQ(queue_.get(), std::nullopt);
  EXPECT_EQ(counts_.depth_now, 0U);
}

// Real threads and a real clock: what was added is worked on after it was added, and no key by two at a time.
TEST(WorkQueueThreads, EveryAddIsFollowedByWorkAndNoKeyIsWorkedOnTwiceAtATime) {
  constexpr int kKeys = 17;
  constexpr int kAddsEach = 3000;
  WorkQueue queue(system_time, {std::chrono::milliseconds(1), std::chrono::milliseconds(2)});
  std::atomic<int> added[kKeys] = {};
  std::atomic<int> seen[kKeys] = {};
  std::atomic<int> inside[kKeys] = {};
  std::atomic<int> overlaps{0};
  std::vector<std::jthread> workers;
  for (int w = 0; w < 4; ++w) {
    workers.emplace_back([&] {
      while (const auto key = queue.get()) {
        const int k = std::stoi(key->second);
        if (inside[k]++ != 0) ++overlaps;
        seen[k] = added[k].load();
        --inside[k];
        queue.done(*key);
      }
    });
  }
  std::vector<std::jthread> producers;
  for (int p = 0; p < 3; ++p) {
    producers.emplace_back([&, p] {
      for (int i = 0; i < kAddsEach; ++i) {
        const int k = (i * 7 + p) % kKeys;
        const WorkQueue::Key key{"ns", std::to_string(k)};
        ++added[k];
        if (i % 3 == 0) {
          queue.add_at(key, system_time() + std::chrono::milliseconds(1));
        } else if (i % 50 == 1) {
          queue.add_rate_limited(key);
        } else {
          queue.add(key);
        }
      }
      for (int k = 0; k < kKeys; ++k) queue.add({"ns", std::to_string(k)});
    });
  }
  producers.clear();
  queue.shut_down();
  workers.clear();
  EXPECT_EQ(overlaps, 0);
  for (int k = 0; k < kKeys; ++k) EXPECT_EQ(seen[k], added[k]) << k;
}

TEST(WorkQueueThreads, ADelayedKeyWakesAWorkerThatSleeps) {
  WorkQueue queue(system_time);
  std::vector<std::jthread> workers;
  std::atomic<int> got{0};
  for (int w = 0; w < 3; ++w) {
    workers.emplace_back([&] {
      while (const auto key = queue.get()) {
        queue.done(*key);
        if (++got == 5) queue.shut_down();
      }
    });
  }
  for (int i = 0; i < 5; ++i) {
    queue.add_at({"ns", std::to_string(i)}, system_time() + std::chrono::milliseconds(1 + i));
  }
  workers.clear();  // for ever where one is missed
  EXPECT_EQ(got, 5);
}

}  // namespace
}  // namespace coxswain
