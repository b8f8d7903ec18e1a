#include "runtime/data/sampler.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace coxswain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int64_t> sorted(std::vector<int64_t> values) {
  std::ranges::sort(values);
  return values;
}

std::vector<int64_t> counting(int64_t n) {
  std::vector<int64_t> values(n);
  std::iota(values.begin(), values.end(), int64_t{0});
  return values;
}

// Rows of all ranks for micro-steps from `consumed` on, until `end`.
std::vector<int64_t> run(Sampler& sampler, int world, int64_t batch, int64_t consumed, int64_t end) {
  std::vector<int64_t> rows;
  for (; consumed < end; consumed += world * batch) {
    for (int rank = 0; rank < world; ++rank) {
      const auto part = sampler.micro_batch(consumed, rank, batch);
      rows.insert(rows.end(), part.begin(), part.end());
    }
  }
  return rows;
}

TEST(EpochPermutation, HoldsEachRowOnce) {
  for (int64_t rows : {1, 2, 3, 10, 1000}) {
    EXPECT_EQ(sorted(epoch_permutation(rows, 42, 0)), counting(rows)) << rows;
  }
}

// Written down: checkpoints of older releases continue only if the order never changes.
TEST(EpochPermutation, IsTheSameForEver) {
  EXPECT_THAT(epoch_permutation(10, 42, 0), ElementsAre(2, 8, 9, 7, 1, 4, 6, 0, 5, 3));
  EXPECT_THAT(epoch_permutation(10, 42, 1), ElementsAre(3, 1, 6, 8, 4, 5, 9, 7, 2, 0));
  EXPECT_THAT(epoch_permutation(10, 7, 0), ElementsAre(0, 9, 5, 2, 7, 4, 8, 6, 1, 3));
}

TEST(EpochPermutation, PutsEveryRowEverywhereEquallyOften) {
  constexpr int kRows = 5, kEpochs = 20000;
  std::map<std::pair<int64_t, int64_t>, int> seen;
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const auto order = epoch_permutation(kRows, 1, epoch);
    for (int64_t place = 0; place < kRows; ++place) ++seen[{place, order[place]}];
  }
  ASSERT_EQ(seen.size(), kRows * kRows);
  for (const auto& [cell, count] : seen)
    EXPECT_NEAR(count, kEpochs / kRows, 300) << cell.first << " " << cell.second;
}

TEST(Sampler, WithoutShuffleIsTheFileOrderFormula) {
  constexpr int64_t kRows = 7, kBatch = 2;
  constexpr int kWorld = 3;
  Sampler sampler(kRows, 42, false);
  for (int64_t step = 0; step < 10; ++step) {
    for (int rank = 0; rank < kWorld; ++rank) {
      const auto rows = sampler.micro_batch(step * kWorld * kBatch, rank, kBatch);
      for (int64_t b = 0; b < kBatch; ++b) EXPECT_EQ(rows[b], ((step * kWorld + rank) * kBatch + b) % kRows);
    }
  }
}

TEST(Sampler, EveryEpochIsAnotherOrderOfAllRows) {
  Sampler sampler(10, 42, true);
  const auto rows = run(sampler, 1, 1, 0, 30);
  std::set<std::vector<int64_t>> orders;
  for (int epoch = 0; epoch < 3; ++epoch) {
    const std::vector<int64_t> order(rows.begin() + epoch * 10, rows.begin() + (epoch + 1) * 10);
    EXPECT_EQ(sorted(order), counting(10));
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 3u);
}

TEST(Sampler, RanksShareTheSameStreamAtAnyWorldSize) {
  Sampler one(11, 3, true), three(11, 3, true);
  EXPECT_EQ(run(one, 1, 6, 0, 36), run(three, 3, 2, 0, 36));
}

TEST(Sampler, ResumedAtAnotherWorldSizeNeitherRepeatsNorSkips) {
  Sampler whole(13, 5, true), before(13, 5, true), after(13, 5, true);
  auto rows = run(before, 2, 2, 0, 12);
  const auto rest = run(after, 3, 1, 12, 39);
  rows.insert(rows.end(), rest.begin(), rest.end());
  EXPECT_EQ(rows, run(whole, 1, 1, 0, 39));
}

TEST(PlanSteps, CoversTheEpochsAndFillsTheLastMicroStep) {
  const auto plan =
      plan_steps({.rows = 10, .world_size = 2, .batch_size = 2, .gradient_accumulation = 2}, {});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->total_steps, 2);  // micro-steps of 4 rows: 3 of them, in steps of 2 and 1
  EXPECT_EQ(plan->end, 12);
  EXPECT_EQ(plan->micro_batches(0), 2);
  EXPECT_EQ(plan->micro_batches(8), 1);
  EXPECT_EQ(plan->micro_batches(12), 0);
}

TEST(PlanSteps, EpochsMayBeAFraction) {
  EXPECT_EQ(plan_steps({.rows = 100, .batch_size = 5, .epochs = 0.5}, {})->total_steps, 10);
  EXPECT_EQ(plan_steps({.rows = 100, .batch_size = 5, .epochs = 2.5}, {})->total_steps, 50);
  const auto none = plan_steps({.rows = 100, .epochs = 0}, {});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("epochs is 0"));
}

TEST(PlanSteps, MaxStepsWinsAndGoesOnThroughEpochs) {
  const auto plan = plan_steps({.rows = 3, .batch_size = 2, .gradient_accumulation = 4, .max_steps = 7}, {});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->total_steps, 7);
  EXPECT_EQ(plan->end, 56);
  EXPECT_EQ(plan->micro_batches(48), 4);
  EXPECT_EQ(plan->micro_batches(56), 0);
}

TEST(PlanSteps, RefusesMoreRowsThanCanBeCounted) {
  const auto plan = plan_steps(
      {.rows = 3, .batch_size = 1'000'000, .gradient_accumulation = 1'000'000, .max_steps = 10'000'000}, {});
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().message, HasSubstr("max_steps 10000000"));
}

TEST(PlanSteps, GoesOnWhereARunStood) {
  const StepShape shape{.rows = 100, .world_size = 2, .batch_size = 5, .gradient_accumulation = 2};
  ASSERT_EQ(plan_steps(shape, {})->total_steps, 5);
  const auto same = plan_steps(shape, {.step = 2, .consumed = 40});
  EXPECT_EQ(same->total_steps, 5);
  EXPECT_EQ(same->end, 100);
  StepShape smaller = shape;
  smaller.world_size = 1;
  const auto other = plan_steps(smaller, {.step = 2, .consumed = 40});
  EXPECT_EQ(other->total_steps, 8);  // 60 rows left, 10 a step
  EXPECT_EQ(other->end, 100);
  EXPECT_EQ(plan_steps(shape, {.step = 5, .consumed = 100})->micro_batches(100), 0);
}

TEST(PlanSteps, TellsWhereEpochsEnd) {
  const auto plan = plan_steps({.rows = 10, .batch_size = 4, .epochs = 2}, {});
  ASSERT_EQ(plan->total_steps, 5);
  std::vector<int64_t> ends;
  for (int64_t step = 0; step < 5; ++step) {
    if (plan->ends_epoch(step * 4, (step + 1) * 4)) ends.push_back(step);
  }
  EXPECT_THAT(ends, ElementsAre(2, 4));
  EXPECT_DOUBLE_EQ(plan->epoch(5), 0.5);
}

TEST(PlanSteps, RefusesMoreRanksThanRows) {
  const auto plan = plan_steps({.rows = 3, .world_size = 4}, {});
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, contract::ExitCode::kBadInput);
  EXPECT_THAT(plan.error().message, HasSubstr("3 row(s) for 4 ranks"));
  EXPECT_TRUE(plan_steps({.rows = 4, .world_size = 4}, {}));
}

TEST(DerivedLoggingSteps, IsAFifthOfTheBatchesWithinBounds) {
  EXPECT_EQ(derived_logging_steps(2, 2), 1);
  EXPECT_EQ(derived_logging_steps(100, 2), 10);
  EXPECT_EQ(derived_logging_steps(109, 10), 2);
  EXPECT_EQ(derived_logging_steps(100000, 2), 25);
}

}  // namespace
}  // namespace coxswain
