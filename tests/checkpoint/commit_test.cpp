#include "runtime/checkpoint/commit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/checkpoint/fence.h"
#include "tests/checkpoint/temporary_folder.h"

namespace coxswain {
namespace {

namespace fs = std::filesystem;
using contract::ExitCode;
using ::testing::HasSubstr;

CheckpointTarget recovery_target(const TemporaryFolder& folder, int64_t step, int64_t attempt) {
  return {CheckpointKind::kRecovery, folder.path(), step, attempt, folder.path()};
}

void save(const CheckpointTarget& target, const std::string& content) {
  ASSERT_TRUE(begin_checkpoint(target));
  ASSERT_TRUE(write_durably(target.temporary_path() / kStateFile, content));
  ASSERT_TRUE(commit_checkpoint(target));
}

TEST(Commit, ACheckpointCountsOnlyOnceItIsCommitted) {
  TemporaryFolder folder;
  const auto target = recovery_target(folder, 3, 0);
  ASSERT_TRUE(begin_checkpoint(target));
  ASSERT_TRUE(write_durably(target.temporary_path() / kStateFile, "{}"));
  EXPECT_TRUE(complete_checkpoints(folder.path(), CheckpointKind::kRecovery)->empty());
  ASSERT_TRUE(commit_checkpoint(target));
  EXPECT_EQ(complete_checkpoints(folder.path(), CheckpointKind::kRecovery)->size(), 1u);
  EXPECT_FALSE(fs::exists(target.temporary_path()));
}

TEST(Commit, AnAbandonedSaveLeavesNothingBehindInTheNextOne) {
  TemporaryFolder folder;
  const auto target = recovery_target(folder, 3, 0);
  ASSERT_TRUE(begin_checkpoint(target));
  folder.touch(target.temporary_path().filename() / "rank-7.safetensors");
  save(target, "{}");
  EXPECT_FALSE(fs::exists(target.final_path() / "rank-7.safetensors"));
}

TEST(Commit, AUserSaveOfTheSameStepReplacesTheOld) {
  TemporaryFolder folder;
  CheckpointTarget target = recovery_target(folder, 3, 0);
  target.kind = CheckpointKind::kUser;
  save(target, "old");
  save(target, "new");
  EXPECT_EQ(*read_text(target.final_path() / kStateFile), "new");
  EXPECT_EQ(complete_checkpoints(folder.path(), CheckpointKind::kUser)->size(), 1u);
}

// As a kill between the renames and the marker of a save leaves it.
struct ReplacedSave {
  TemporaryFolder folder;
  CheckpointTarget target = recovery_target(folder, 3, 0);
  fs::path replaced = folder.path() / ".tmp-replaced-checkpoint-3";

  ReplacedSave() {
    target.kind = CheckpointKind::kUser;
    save(target, "old");
    fs::rename(target.final_path(), replaced);
  }

  void restart() { ASSERT_TRUE(remove_unfinished(folder.path(), CheckpointKind::kUser)); }

  void expect_only(const std::string& content) {
    EXPECT_TRUE(is_complete(target.final_path()));
    EXPECT_EQ(*read_text(target.final_path() / kStateFile), content);
    EXPECT_FALSE(fs::exists(replaced));
  }
};

TEST(Commit, TheReplacedCheckpointStandsAgainIfTheNewOneHadNotItsName) {
  ReplacedSave lost;
  ASSERT_TRUE(begin_checkpoint(lost.target));
  lost.restart();
  lost.expect_only("old");
  EXPECT_FALSE(fs::exists(lost.target.temporary_path()));
}

TEST(Commit, TheReplacedCheckpointStandsAgainIfTheNewOneHadNoMarker) {
  ReplacedSave lost;
  fs::create_directories(lost.target.final_path());
  ASSERT_TRUE(write_durably(lost.target.final_path() / kStateFile, "new"));
  lost.restart();
  lost.expect_only("old");
}

TEST(Commit, TheReplacedCheckpointGoesOnceTheNewOneIsComplete) {
  ReplacedSave lost;
  save(lost.target, "new");
  lost.restart();
  lost.expect_only("new");
}

TEST(Commit, WhatOthersPutThereStays) {
  TemporaryFolder folder;
  CheckpointTarget target = recovery_target(folder, 3, 0);
  target.kind = CheckpointKind::kUser;
  for (const char* file :
       {"checkpoint-3/x", ".tmp-mine", ".tmp-notes/x", ".tmp-replaced-notes/x", "checkpoint-4/x"})
    folder.touch(file);
  ASSERT_TRUE(remove_unfinished(folder.path(), CheckpointKind::kUser));
  ASSERT_TRUE(begin_checkpoint(target));
  ASSERT_TRUE(write_durably(target.temporary_path() / kStateFile, "{}"));
  const auto refused = commit_checkpoint(target);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::kStorage);
  EXPECT_THAT(refused.error().message, HasSubstr("that this program has not written"));
  for (const char* file :
       {"checkpoint-3/x", ".tmp-mine", ".tmp-notes/x", ".tmp-replaced-notes/x", "checkpoint-4/x"}) {
    EXPECT_TRUE(fs::exists(folder.path() / file)) << file;
  }
}

TEST(Commit, RefusedWhenALaterAttemptHasBegun) {
  TemporaryFolder folder;
  const auto target = recovery_target(folder, 3, 1);
  ASSERT_TRUE(claim_attempt(folder.path(), 1));
  ASSERT_TRUE(begin_checkpoint(target));
  ASSERT_TRUE(claim_attempt(folder.path(), 2));
  auto refused = commit_checkpoint(target);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::kLostPeer);
  EXPECT_THAT(refused.error().message, HasSubstr("replaced by attempt 2"));
  EXPECT_TRUE(complete_checkpoints(folder.path(), CheckpointKind::kRecovery)->empty());
}

TEST(Fence, AnOlderAttemptCannotStartAgain) {
  TemporaryFolder folder;
  ASSERT_TRUE(claim_attempt(folder.path(), 2));
  ASSERT_TRUE(claim_attempt(folder.path(), 2));
  EXPECT_FALSE(claim_attempt(folder.path(), 1));
  EXPECT_FALSE(begin_checkpoint(recovery_target(folder, 1, 1)));
}

TEST(Commit, CleaningKeepsCompleteOnesAndFoldersOfOthers) {
  TemporaryFolder folder;
  CheckpointTarget target = recovery_target(folder, 3, 0);
  target.kind = CheckpointKind::kUser;
  save(target, "{}");
  folder.touch(".tmp-checkpoint-4-attempt-0/model.safetensors");
  folder.touch(fs::path("checkpoint-5") / kStateFile);  // ours, without a marker
  folder.touch("checkpoint-6/trainer_state.json");      // another program's
  ASSERT_TRUE(remove_unfinished(folder.path(), CheckpointKind::kUser));
  EXPECT_TRUE(is_complete(folder.path() / "checkpoint-3"));
  EXPECT_FALSE(fs::exists(folder.path() / ".tmp-checkpoint-4-attempt-0"));
  EXPECT_FALSE(fs::exists(folder.path() / "checkpoint-5"));
  EXPECT_TRUE(fs::exists(folder.path() / "checkpoint-6"));
}

TEST(Commit, StorageThatFailsIsExitCode74) {
  CheckpointTarget target{CheckpointKind::kRecovery, "/proc/coxswain", 1, 0, "/proc/coxswain"};
  auto begun = begin_checkpoint(target);
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().code, ExitCode::kStorage);
  EXPECT_THAT(begun.error().message, HasSubstr("/proc/coxswain"));
}

TEST(Nonce, SeenOnTheSameVolumeOnly) {
  TemporaryFolder volume;
  TemporaryFolder other;
  ASSERT_TRUE(write_nonce(volume.path(), 12345));
  EXPECT_TRUE(check_nonce(volume.path(), 12345, std::chrono::milliseconds(0)));
  EXPECT_FALSE(check_nonce(volume.path(), 54321, std::chrono::milliseconds(0)));
  auto refused = check_nonce(other.path(), 12345, std::chrono::milliseconds(0));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::kBadInput);
  EXPECT_THAT(refused.error().message, HasSubstr("ReadWriteMany"));
}

}  // namespace
}  // namespace coxswain
