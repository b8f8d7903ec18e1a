// Which checkpoint folders exist, which of them count, and which may go. Torch-free.
//
// A checkpoint is a folder that holds kCommitMarker; without it a folder is the remains of a save that never
// ended, and is never read. There are two kinds: recovery checkpoints (step-N-attempt-A, in the recovery
// folder, to continue after a restart) and user saves (checkpoint-N, in the project folder, by
// save_strategy).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "contract/result.h"

namespace coxswain {

inline constexpr char kCommitMarker[] = "COMMIT";
// Written by rank 0 into every checkpoint; tells a folder of ours from anything else with such a name.
inline constexpr char kStateFile[] = "coxswain_state.json";

// In the recovery folder of a job: its final outputs are written.
inline constexpr char kFinishedMarker[] = "FINISHED";

// Whether an earlier attempt of the job has finished it (its last process may have been lost before it could
// say so). Asked by every agent before it waits for the others, and by workers: either all of an attempt see
// the marker or none.
bool is_finished(const std::filesystem::path& recovery_folder, const std::string& job_uid, int64_t attempt);

// Files of each rank in a checkpoint.
std::string rank_file_name(int rank);       // all ranks
std::string optimizer_file_name(int rank);  // rank 0; all ranks where they are sharded

enum class CheckpointKind { kRecovery, kUser };

struct CheckpointFolder {
  std::filesystem::path path;
  int64_t step = 0;
  int64_t attempt = 0;  // 0 for user saves: their name carries none
};

std::string checkpoint_name(CheckpointKind kind, int64_t step, int64_t attempt);
std::optional<CheckpointFolder> parse_checkpoint_name(CheckpointKind kind, const std::filesystem::path& path);

bool is_complete(const std::filesystem::path& checkpoint);

// In rising order of (step, attempt). A `directory` that does not exist holds none.
Result<std::vector<CheckpointFolder>> complete_checkpoints(const std::filesystem::path& directory,
                                                           CheckpointKind kind);

// What to delete so that `limit` are kept: the oldest, never the newest, and never those of `keep_steps` (the
// best, the one just saved), which then stay beyond the limit. `complete` is in rising order; a limit of 0 or
// less keeps all.
std::vector<CheckpointFolder> surplus_checkpoints(const std::vector<CheckpointFolder>& complete, int limit,
                                                  const std::set<int64_t>& keep_steps);

}  // namespace coxswain
