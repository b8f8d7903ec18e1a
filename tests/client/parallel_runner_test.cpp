#include "operator/controller/parallel_runner.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>

namespace coxswain {
namespace {

TEST(ParallelRunner, DoesEachPieceOnceWithAndWithoutThreads) {
  for (const int threads : {0, 1, 7}) {
    ParallelRunner runner;
    runner.start(threads);
    std::vector<std::atomic<int>> done(100);
    runner.run(done.size(), [&](size_t i) { ++done[i]; });
    for (const auto& times : done) EXPECT_EQ(times, 1);
    runner.run(0, [](size_t) { FAIL() << "there is no piece"; });
  }
}

TEST(ParallelRunner, WorksOnAsManyPiecesAtATimeAsItHasThreadsAndTheCaller) {
  ParallelRunner runner;
  runner.start(3);
  std::latch all_have_begun(4);
  runner.run(
      4, [&](size_t) { all_have_begun.arrive_and_wait(); });  // hangs where fewer than four work at a time
}

TEST(ParallelRunner, SeveralCallersShareItsThreadsAndEachReturnsWhenItsOwnWorkIsDone) {
  ParallelRunner runner;
  runner.start(2);
  std::vector<std::jthread> callers;
  for (int caller = 0; caller < 6; ++caller) {
    callers.emplace_back([&runner] {
      for (int round = 0; round < 200; ++round) {
        std::atomic<size_t> done = 0;
        const size_t count = static_cast<size_t>(round % 9);
        runner.run(count, [&](size_t) { ++done; });
        EXPECT_EQ(done, count);
      }
    });
  }
}

TEST(ParallelRunner, ACallerIsNotHeldUpByThreadsThatOthersKeepBusy) {
  ParallelRunner runner;
  runner.start(1);
  std::latch busy(2);
  std::latch may_end(1);
  std::jthread other([&] {
    runner.run(2, [&](size_t) {
      busy.count_down();
      may_end.wait();
    });
  });
  busy.wait();
  int done = 0;
  runner.run(3, [&](size_t) { ++done; });
  EXPECT_EQ(done, 3);
  may_end.count_down();
}

}  // namespace
}  // namespace coxswain
