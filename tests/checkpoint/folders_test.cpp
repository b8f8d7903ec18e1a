#include "runtime/checkpoint/folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/checkpoint/temporary_folder.h"

namespace coxswain {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int64_t> steps(const std::vector<CheckpointFolder>& folders) {
  std::vector<int64_t> out;
  for (const auto& folder : folders) out.push_back(folder.step);
  return out;
}

std::vector<CheckpointFolder> with_steps(const std::vector<int64_t>& numbers) {
  std::vector<CheckpointFolder> out;
  for (int64_t step : numbers) out.push_back({"checkpoint-" + std::to_string(step), step, 0});
  return out;
}

TEST(Folders, NamesAreReadBackAndNothingElseIs) {
  auto recovery = parse_checkpoint_name(CheckpointKind::kRecovery, "/r/step-120-attempt-3");
  ASSERT_TRUE(recovery);
  EXPECT_EQ(recovery->step, 120);
  EXPECT_EQ(recovery->attempt, 3);
  EXPECT_EQ(checkpoint_name(CheckpointKind::kRecovery, 120, 3), "step-120-attempt-3");
  EXPECT_EQ(parse_checkpoint_name(CheckpointKind::kUser, "/p/checkpoint-7")->step, 7);
  for (const char* other : {"step-1", "step--1-attempt-0", ".tmp-step-1-attempt-0", "step-1-attempt-", "x"}) {
    EXPECT_FALSE(parse_checkpoint_name(CheckpointKind::kRecovery, other)) << other;
  }
  for (const char* other : {"checkpoint-", "checkpoint-7b", "checkpoint-best", ".tmp-checkpoint-7"}) {
    EXPECT_FALSE(parse_checkpoint_name(CheckpointKind::kUser, other)) << other;
  }
}

TEST(Folders, OnlyMarkedOnesCountInNumericalOrder) {
  TemporaryFolder folder;
  for (int step : {9, 10, 100}) folder.touch("checkpoint-" + std::to_string(step) + "/COMMIT");
  folder.touch("checkpoint-101/model.safetensors");
  folder.touch(".tmp-checkpoint-102-attempt-0/COMMIT");
  EXPECT_THAT(steps(*complete_checkpoints(folder.path(), CheckpointKind::kUser)), ElementsAre(9, 10, 100));
}

TEST(Folders, OfOneStepTheLaterAttemptIsNewer) {
  TemporaryFolder folder;
  folder.touch("step-5-attempt-10/COMMIT");
  folder.touch("step-5-attempt-9/COMMIT");
  auto found = complete_checkpoints(folder.path(), CheckpointKind::kRecovery);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->back().attempt, 10);
}

TEST(Folders, AFolderThatIsNotThereHoldsNone) {
  EXPECT_THAT(*complete_checkpoints("/nonexistent/coxswain", CheckpointKind::kUser), IsEmpty());
}

TEST(Retention, KeepsTheNewest) {
  EXPECT_THAT(steps(surplus_checkpoints(with_steps({1, 2, 3, 4}), 2, {})), ElementsAre(1, 2));
  EXPECT_THAT(surplus_checkpoints(with_steps({1, 2}), 2, {}), IsEmpty());
  EXPECT_THAT(surplus_checkpoints(with_steps({}), 1, {}), IsEmpty());
}

TEST(Retention, NeverTheBestNorTheNewest) {
  EXPECT_THAT(steps(surplus_checkpoints(with_steps({1, 2, 3}), 1, {1})), ElementsAre(2));
  EXPECT_THAT(steps(surplus_checkpoints(with_steps({1, 2, 3}), 2, {1})), ElementsAre(2));
  EXPECT_THAT(steps(surplus_checkpoints(with_steps({1, 2, 3}), 1, {3})), ElementsAre(1, 2));
}

TEST(Retention, ASaveBelowThoseOfAnEarlierRunStays) {
  EXPECT_THAT(steps(surplus_checkpoints(with_steps({10, 90, 100}), 1, {10})), ElementsAre(90));
}

TEST(Retention, WithoutALimitAllStay) {
  EXPECT_THAT(surplus_checkpoints(with_steps({1, 2, 3}), 0, {}), IsEmpty());
}

}  // namespace
}  // namespace coxswain
