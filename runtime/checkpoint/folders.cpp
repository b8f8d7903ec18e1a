#include "runtime/checkpoint/folders.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <tuple>

namespace coxswain {
namespace fs = std::filesystem;
namespace {

std::optional<int64_t> parse_number(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

bool is_finished(const fs::path& recovery_folder, const std::string& job_uid, int64_t attempt) {
  std::error_code ignored;
  return !job_uid.empty() && attempt > 0 && fs::exists(recovery_folder / kFinishedMarker, ignored);
}

std::string rank_file_name(int rank) {
  return "rank-" + std::to_string(rank) + ".safetensors";
}

std::string optimizer_file_name(int rank) {
  return "optimizer-rank-" + std::to_string(rank) + ".safetensors";
}

std::string checkpoint_name(CheckpointKind kind, int64_t step, int64_t attempt) {
  if (kind == CheckpointKind::kUser) return "checkpoint-" + std::to_string(step);
  return "step-" + std::to_string(step) + "-attempt-" + std::to_string(attempt);
}

std::optional<CheckpointFolder> parse_checkpoint_name(CheckpointKind kind, const fs::path& path) {
  const std::string name = path.filename().string();
  std::string_view rest = name;
  if (kind == CheckpointKind::kUser) {
    if (!take_prefix(rest, "checkpoint-")) return std::nullopt;
    auto step = parse_number(rest);
    if (!step) return std::nullopt;
    return CheckpointFolder{path, *step, 0};
  }
  if (!take_prefix(rest, "step-")) return std::nullopt;
  const size_t middle = rest.find("-attempt-");
  if (middle == std::string_view::npos) return std::nullopt;
  auto step = parse_number(rest.substr(0, middle));
  auto attempt = parse_number(rest.substr(middle + std::string_view("-attempt-").size()));
  if (!step || !attempt) return std::nullopt;
  return CheckpointFolder{path, *step, *attempt};
}

bool is_complete(const fs::path& checkpoint) {
  std::error_code ignored;
  return fs::is_regular_file(checkpoint / kCommitMarker, ignored);
}

Result<std::vector<CheckpointFolder>> complete_checkpoints(const fs::path& directory, CheckpointKind kind) {
  std::vector<CheckpointFolder> found;
  std::error_code error;
  if (!fs::exists(directory, error)) return found;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    auto folder = parse_checkpoint_name(kind, entry->path());
    if (folder && is_complete(folder->path)) found.push_back(std::move(*folder));
  }
  if (error) {
    return fail(contract::ExitCode::kStorage,
                "Cannot list the checkpoints in " + directory.string() + ": " + error.message() + ".");
  }
  std::sort(found.begin(), found.end(), [](const CheckpointFolder& a, const CheckpointFolder& b) {
    return std::tie(a.step, a.attempt) < std::tie(b.step, b.attempt);
  });
  return found;
}

std::vector<CheckpointFolder> surplus_checkpoints(const std::vector<CheckpointFolder>& complete, int limit,
                                                  const std::set<int64_t>& keep_steps) {
  std::vector<CheckpointFolder> surplus;
  if (limit <= 0 || complete.empty()) return surplus;
  for (size_t i = 0; i + 1 < complete.size(); ++i) {
    if (complete.size() - surplus.size() <= static_cast<size_t>(limit)) break;
    if (keep_steps.contains(complete[i].step)) continue;
    surplus.push_back(complete[i]);
  }
  return surplus;
}

}  // namespace coxswain
