#include "operator/controller/work_queue.h"

#include <gtest/gtest.h>

namespace coxswain {
namespace {

constexpr TimePoint kStart{std::chrono::hours(1)};
const WorkQueue::Key kA{"ns", "a"};
const WorkQueue::Key kB{"ns", "b"};

TEST(WorkQueue, AJobIsInItOnceAtItsEarliestTime) {
  WorkQueue queue;
  queue.add(kA, kStart + std::chrono::seconds(10));
  queue.add(kA, kStart);
  queue.add(kA, kStart + std::chrono::seconds(20));
  EXPECT_EQ(queue.next_due(), kStart);
  EXPECT_EQ(queue.pop(kStart), kA);
  EXPECT_EQ(queue.pop(kStart + std::chrono::hours(1)), std::nullopt);
  EXPECT_EQ(queue.next_due(), TimePoint::max());
}

TEST(WorkQueue, NothingComesBeforeItsTime) {
  WorkQueue queue;
  queue.add(kA, kStart + std::chrono::seconds(2));
  queue.add(kB, kStart + std::chrono::seconds(1));
  EXPECT_EQ(queue.pop(kStart), std::nullopt);
  EXPECT_EQ(queue.pop(kStart + std::chrono::seconds(1)), kB);
  EXPECT_EQ(queue.pop(kStart + std::chrono::seconds(1)), std::nullopt);
  queue.forget(kA);
  EXPECT_EQ(queue.pop(kStart + std::chrono::seconds(9)), std::nullopt);
}

}  // namespace
}  // namespace coxswain
