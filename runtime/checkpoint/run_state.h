// What a checkpoint says about itself (coxswain_state.json), and which checkpoint a run goes on from.
// Torch-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "contract/result.h"
#include "runtime/checkpoint/folders.h"

namespace coxswain {

struct RunState {
  int64_t step = 0;         // optimizer steps done
  int64_t consumed = 0;     // places of the sample stream consumed (data/sampler.h)
  int64_t tokens_seen = 0;  // of all ranks, padding left out
  int world_size = 1;       // ranks that wrote the checkpoint
  bool sharded = false;     // each rank holds its own part of parameters and optimizer state
  bool peft = false;
  int64_t attempt = 0;
  std::string job_uid;  // empty: a run without a job
};

std::string to_json(const RunState& state);
Result<RunState> read_run_state(const std::filesystem::path& checkpoint);

struct ResumePoint {
  std::filesystem::path path;
  CheckpointKind kind = CheckpointKind::kRecovery;
  RunState state;
};

struct ResumeRequest {
  std::filesystem::path project_folder;  // user saves
  std::filesystem::path recovery_folder;
  std::string job_uid;  // empty: a run without a job
  std::optional<std::string> resume_from_checkpoint;
};

struct ResumeDecision {
  std::optional<ResumePoint> point;  // none: start fresh
  std::vector<std::string> notices;
};

// A complete checkpoint that is damaged (state unreadable, a file of tensors missing or cut) is passed over
// with a notice while there is an older one that is whole; if there is none, that is kStorage. In this order:
//  1. a job (job_uid) that has a complete recovery checkpoint of its own goes on from the newest of them;
//  2. resume_from_checkpoint `auto`, `true` or `latest`: the newest complete user save – for a run without a
//  job also
//     recovery checkpoint – and where there is none, a notice and a fresh start;
//  3. resume_from_checkpoint with a path: that checkpoint, which must be complete (kBadInput);
//  4. else a fresh start.
Result<ResumeDecision> decide_resume(const ResumeRequest& request);

}  // namespace coxswain
