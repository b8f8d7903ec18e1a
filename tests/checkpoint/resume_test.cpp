#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/checkpoint/commit.h"
#include "runtime/checkpoint/run_state.h"
#include "tests/checkpoint/temporary_folder.h"

namespace coxswain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ResumeTest : public ::testing::Test {
 protected:
  void save(CheckpointKind kind, int64_t step, const std::string& uid, bool complete = true) {
    const auto directory = kind == CheckpointKind::kUser ? project_.path() : recovery_.path();
    const auto folder = directory / checkpoint_name(kind, step, 0);
    ASSERT_TRUE(make_folder(folder));
    RunState state;
    state.step = step;
    state.job_uid = uid;
    state.peft = true;
    ASSERT_TRUE(write_durably(folder / kStateFile, to_json(state)));
    for (const std::string& file :
         {rank_file_name(0), optimizer_file_name(0), std::string("adapter_model.safetensors")}) {
      ASSERT_TRUE(write_durably(folder / file, std::string("\x02\0\0\0\0\0\0\0{}", 10)));
    }
    if (complete) {
      ASSERT_TRUE(write_durably(folder / kCommitMarker, ""));
    }
  }

  ResumeRequest request(const std::string& uid, std::optional<std::string> wish = std::nullopt) {
    return {project_.path(), recovery_.path(), uid, std::move(wish)};
  }

  TemporaryFolder project_;
  TemporaryFolder recovery_;
};

TEST_F(ResumeTest, AJobAlwaysGoesOnFromItsNewestRecoveryCheckpoint) {
  save(CheckpointKind::kRecovery, 9, "uid-1");
  save(CheckpointKind::kRecovery, 10, "uid-1");
  save(CheckpointKind::kRecovery, 11, "uid-1", false);
  auto decision = decide_resume(request("uid-1"));
  ASSERT_TRUE(decision && decision->point);
  EXPECT_EQ(decision->point->state.step, 10);
}

TEST_F(ResumeTest, ANewJobNeverDoes) {
  save(CheckpointKind::kRecovery, 9, "uid-1");
  save(CheckpointKind::kUser, 9, "uid-1");
  auto decision = decide_resume(request("uid-2"));
  ASSERT_TRUE(decision);
  EXPECT_FALSE(decision->point);
  EXPECT_THAT(decision->notices, IsEmpty());
}

TEST_F(ResumeTest, AutoTakesTheNewestCompleteUserSave) {
  save(CheckpointKind::kUser, 9, "uid-1");
  save(CheckpointKind::kUser, 10, "uid-1");
  save(CheckpointKind::kUser, 11, "uid-1", false);
  for (const char* wish : {"auto", "true", "latest"}) {
    auto decision = decide_resume(request("uid-2", wish));
    ASSERT_TRUE(decision && decision->point) << wish;
    EXPECT_EQ(decision->point->state.step, 10);
    EXPECT_EQ(decision->point->kind, CheckpointKind::kUser);
  }
}

TEST_F(ResumeTest, AutoWithoutACompleteOneWarnsAndStartsFresh) {
  save(CheckpointKind::kUser, 11, "", false);
  auto decision = decide_resume(request("", "auto"));
  ASSERT_TRUE(decision);
  EXPECT_FALSE(decision->point);
  EXPECT_THAT(decision->notices, ElementsAre(HasSubstr("starts fresh")));
}

TEST_F(ResumeTest, WithoutAJobRecoveryCheckpointsAreForAutoOnly) {
  save(CheckpointKind::kUser, 9, "");
  save(CheckpointKind::kRecovery, 12, "");
  EXPECT_FALSE(decide_resume(request(""))->point);
  EXPECT_EQ(decide_resume(request("", "auto"))->point->state.step, 12);
}

TEST_F(ResumeTest, APathMustBeACompleteCheckpoint) {
  save(CheckpointKind::kUser, 9, "");
  save(CheckpointKind::kUser, 10, "", false);
  EXPECT_EQ(decide_resume(request("", "checkpoint-9"))->point->state.step, 9);
  EXPECT_EQ(decide_resume(request("", (project_.path() / "checkpoint-9").string()))->point->state.step, 9);
  auto half = decide_resume(request("", "checkpoint-10"));
  ASSERT_FALSE(half);
  EXPECT_EQ(half.error().code, contract::ExitCode::kBadInput);
  EXPECT_THAT(half.error().message, HasSubstr("COMMIT"));
  EXPECT_THAT(decide_resume(request("", "checkpoint-1")).error().message, HasSubstr("does not exist"));
}

TEST_F(ResumeTest, ADamagedOneIsPassedOverForTheOneBefore) {
  save(CheckpointKind::kRecovery, 8, "u");
  save(CheckpointKind::kRecovery, 9, "u");
  const auto newest = recovery_.path() / "step-9-attempt-0";
  const auto expect_passed_over = [&](const std::string& file) {
    auto decision = decide_resume(request("u"));
    ASSERT_TRUE(decision && decision->point) << file;
    EXPECT_EQ(decision->point->state.step, 8) << file;
    EXPECT_THAT(decision->notices, ElementsAre(HasSubstr("is damaged: its " + file)));
  };
  for (const std::string& file : {rank_file_name(0), optimizer_file_name(0)}) {
    const std::string whole = *read_text(newest / file);
    ASSERT_TRUE(write_durably(newest / file, whole.substr(0, 9)));
    expect_passed_over(file);
    std::filesystem::remove(newest / file);
    expect_passed_over(file);
    ASSERT_TRUE(write_durably(newest / file, whole));
  }
  EXPECT_EQ(decide_resume(request("u"))->point->state.step, 9);
  const std::string state = *read_text(newest / kStateFile);
  for (const auto& [from, to] : {std::pair("\"step\": 9", "\"step\": -9"),
                                 {"\"step\": 9", "\"step\": 1e30"},
                                 {"\"step\": 9", "\"step\": 4611686018427387904"},
                                 {"\"consumed\": 0", "\"consumed\": -7"},
                                 {"\"world_size\": 1", "\"world_size\": 0"},
                                 {"\"peft\": true", "\"peft\": 1"},
                                 {"{", ""}}) {
    std::string changed = state;
    ASSERT_NE(changed.find(from), std::string::npos) << from;
    ASSERT_TRUE(write_durably(newest / kStateFile,
                              changed.replace(changed.find(from), std::string(from).size(), to)));
    expect_passed_over(kStateFile);
  }
}

TEST_F(ResumeTest, ADamagedStateIsAStorageFailure) {
  save(CheckpointKind::kRecovery, 9, "u");
  ASSERT_TRUE(write_durably(recovery_.path() / "step-9-attempt-0" / kStateFile, "{\"version\":1,"));
  auto decision = decide_resume(request("u"));
  ASSERT_FALSE(decision);
  EXPECT_EQ(decision.error().code, contract::ExitCode::kStorage);
}

}  // namespace
}  // namespace coxswain
