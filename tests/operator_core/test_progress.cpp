#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "operator/reconcile/progress.h"
#include "tests/operator_core/harness.h"

namespace coxswain::testing {
namespace {

using namespace std::chrono_literals;

Progress at_step(int64_t step) {
  Progress progress;
  progress.step = step;
  progress.total_steps = 100;
  progress.epoch = 0.5;
  progress.loss = 1.25;
  progress.tokens_per_second = 1234.56;
  return progress;
}

TEST(Progress, IsWrittenToStatusAndNoMoreOftenThanItsInterval) {
  World world;
  world.start();
  world.progress = at_step(1);
  world.settle();
  ASSERT_TRUE(world.job.status.training);
  EXPECT_EQ(world.job.status.training->step, 1);
  EXPECT_EQ(world.job.status.training->loss, "1.25");
  EXPECT_EQ(world.job.status.training->tokens_per_second, "1234.6");
  world.advance(14s);
  world.progress = at_step(20);
  EXPECT_FALSE(world.pass().status);
  world.advance(1s);
  world.progress = at_step(21);
  world.pass();
  EXPECT_EQ(world.job.status.training->step, 21);
  EXPECT_EQ(world.job.status.training->estimated_completion_time, world.now + 15s * 79 / 20);
}

TEST(Progress, TheLastOfItIsKeptAtTheEnd) {
  World world;
  world.start();
  world.progress = at_step(99);
  world.settle();
  world.advance(1s);
  world.progress = at_step(100);
  world.end(0, 0);
  world.settle();
  EXPECT_EQ(world.job.status.training->step, 100);
  EXPECT_FALSE(world.job.status.training->estimated_completion_time);
}

TEST(Progress, GoesBackWithARestartAndKeepsTheLastCheckpoint) {
  World world;
  world.start();
  world.progress = at_step(50);
  world.progress->last_checkpoint_step = 40;
  world.settle();
  world.progress = at_step(41);
  world.settle();
  EXPECT_EQ(world.job.status.training->step, 41);
  EXPECT_EQ(world.job.status.training->last_checkpoint_step, 40);
}

TEST(Progress, WithoutAnAnswerTheLastOneStays) {
  World world;
  world.start();
  world.progress = at_step(5);
  world.settle();
  world.progress.reset();
  world.advance(1h);
  EXPECT_FALSE(world.pass().status);
  EXPECT_EQ(world.job.status.training->step, 5);
}

// The nodes' clocks may be off: only the operator's counts.
TEST(Progress, TheTimeOfTheLastProgressIsWhenTheOperatorSawIt) {
  World world;
  world.start();
  world.progress = at_step(5);
  world.settle();
  const TimePoint seen = world.now;
  world.advance(10min);
  EXPECT_FALSE(world.pass().status) << "nothing has changed";
  EXPECT_EQ(world.job.status.training->last_progress_time, seen);
  world.moved = world.now - 1min;  // another phase, say
  world.pass();
  EXPECT_EQ(world.job.status.training->last_progress_time, world.now - 1min);
}

TEST(Progress, NumbersThatAreNone) {
  const TimePoint now;
  Progress progress = at_step(1);
  progress.loss = std::nan("");
  progress.tokens_per_second = INFINITY;
  const TrainingStatus training = training_from(progress, std::nullopt, std::nullopt, now);
  EXPECT_EQ(training.loss, "NaN");
  EXPECT_EQ(training.tokens_per_second, "Inf");
}

// Any program may run in a pod and answer there.
TEST(Progress, CountsThatAreNone) {
  const auto answer = [](const Json& step, const Json& total) {
    return Json{{"attempt", 1},
                {"workers", {{{"rank", 0}, {"step", step}, {"total_steps", total}}}},
                {"last_checkpoint_step", std::numeric_limits<uint64_t>::max()}};
  };
  EXPECT_FALSE(parse_progress(answer(-1, 10), 1));
  EXPECT_FALSE(parse_progress(answer(std::numeric_limits<uint64_t>::max(), 10), 1));
  EXPECT_FALSE(parse_progress(answer(1e300, 10), 1));
  const auto progress = parse_progress(answer(3, std::numeric_limits<int64_t>::min()), 1);
  ASSERT_TRUE(progress);
  EXPECT_EQ(progress->step, 3);
  EXPECT_FALSE(progress->total_steps);
  EXPECT_FALSE(progress->last_checkpoint_step);
}

TEST(Progress, AnAgentsAnswer) {
  const Json answer =
      Json::parse(R"({"job":"j","attempt":2,"node_rank":0,"last_checkpoint_step":40,"workers":[
      {"rank":1,"phase":"train","step":9},
      {"rank":0,"phase":"train","step":42,"total_steps":100,"epoch":0.5,"loss":null,"tokens_per_second":10,
       "updated_at":1767225600.5}]})");
  const auto progress = parse_progress(answer, 2);
  ASSERT_TRUE(progress);
  EXPECT_EQ(progress->step, 42);
  EXPECT_EQ(progress->total_steps, 100);
  EXPECT_EQ(progress->last_checkpoint_step, 40);
  EXPECT_TRUE(std::isnan(*progress->loss));
  EXPECT_FALSE(parse_progress(answer, 1)) << "another attempt's agent";
  for (const char* text : {"null", "[]", "{}", R"({"attempt":2,"workers":[{"rank":0,"phase":"load"}]})"}) {
    EXPECT_FALSE(parse_progress(Json::parse(text), 2)) << text;
  }
}

}  // namespace
}  // namespace coxswain::testing
