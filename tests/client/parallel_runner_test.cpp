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

TEST(ParallelRunner, ItsThreadsWorkForEachCallerInTurn) {
  ParallelRunner runner;
  runner.start(1);
  std::latch callers_have_begun(2);
  std::latch helper_has_done_the_rest(1);
  std::string order;  // of the helper's pieces: whose each was
  const auto call = [&](char name) {
    const auto caller = std::this_thread::get_id();
    runner.run(10, [&, caller, name](size_t) {
      if (std::this_thread::get_id() == caller) {
        callers_have_begun.count_down();
        helper_has_done_the_rest.wait();
        return;
      }
      callers_have_begun.wait();
      order += name;
      if (order.size() == 18) helper_has_done_the_rest.count_down();
    });
  };
  std::jthread first(call, 'a');
  std::jthread second(call, 'b');
  first.join();
  second.join();
  for (size_t i = 2; i < 17; ++i) EXPECT_NE(order[i], order[i - 1]) << order;
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
