// How a checkpoint comes into being, so that a crash at any moment leaves either all of it or none of it:
//
//   rank 0     begin():  remove what an earlier save left, make the temporary folder
//   all ranks  write their own files into it, each followed by make_durable(); then agree that all succeeded
//   rank 0     commit(): fence, fsync the folder, rename it to its name, write the marker, fsync
//
// A reader believes only a folder with the marker (folders.h). Every failure here is ExitCode::kStorage,
// except that a fenced writer gets kLostPeer: a newer attempt of the job has taken over, and what this one
// does no longer matters.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "contract/result.h"
#include "runtime/checkpoint/folders.h"

namespace coxswain {

struct CheckpointTarget {
  CheckpointKind kind = CheckpointKind::kRecovery;
  std::filesystem::path directory;  // the recovery folder, or the project folder
  int64_t step = 0;
  int64_t attempt = 0;
  std::filesystem::path fence;  // the folder that records the highest attempt: the recovery folder

  std::filesystem::path final_path() const;
  std::filesystem::path temporary_path() const;  // .tmp-<name>, with the attempt
};

Result<void> begin_checkpoint(const CheckpointTarget& target);
Result<void> commit_checkpoint(const CheckpointTarget& target);

// The marker goes first: a half-deleted folder is not a checkpoint.
Result<void> delete_checkpoint(const std::filesystem::path& checkpoint);

// Removes temporary folders and folders of ours without a marker; puts back a complete checkpoint that was
// being replaced. Only at start, on rank 0, after claim_attempt().
Result<void> remove_unfinished(const std::filesystem::path& directory, CheckpointKind kind);

// Writes to a temporary name, fsyncs, renames.
Result<void> write_durably(const std::filesystem::path& file, const std::string& content);
// fsync of a file or folder that somebody else wrote.
Result<void> make_durable(const std::filesystem::path& path);
Result<std::string> read_text(const std::filesystem::path& file);
Result<void> make_folder(const std::filesystem::path& folder);

}  // namespace coxswain
