#include "runtime/checkpoint/run_state.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "runtime/checkpoint/commit.h"
#include "runtime/model/safetensors_header.h"

namespace coxswain {
namespace fs = std::filesystem;
namespace {

using OptionalPoint = std::optional<ResumePoint>;

Failure damaged(const fs::path& checkpoint, const std::string& file) {
  return {contract::ExitCode::kStorage,
          "The checkpoint " + checkpoint.string() + " is damaged: its " + file + " is not there as a whole."};
}

// That the files of tensors are there and as long as they say; not what the tensors hold.
Result<void> check_tensor_files(const fs::path& checkpoint, CheckpointKind kind, const RunState& state) {
  std::vector<std::string> files;
  for (int rank = 0; rank < state.world_size; ++rank) {
    files.push_back(rank_file_name(rank));
    if (rank == 0 || state.sharded) files.push_back(optimizer_file_name(rank));
  }
  if (kind == CheckpointKind::kUser && state.peft) files.push_back("adapter_model.safetensors");
  if (kind == CheckpointKind::kUser && !state.peft) {
    const auto weights = find_weight_files(checkpoint.string());
    if (!weights) return tl::unexpected(damaged(checkpoint, "model.safetensors"));
    for (const std::string& file : *weights) files.push_back(fs::path(file).filename().string());
  }
  for (const std::string& file : files) {
    if (!check_safetensors_file((checkpoint / file).string()))
      return tl::unexpected(damaged(checkpoint, file));
  }
  return {};
}

Result<RunState> read_whole(const fs::path& checkpoint, CheckpointKind kind) {
  auto state = read_run_state(checkpoint);
  if (!state) return state;
  if (auto checked = check_tensor_files(checkpoint, kind, *state); !checked)
    return tl::unexpected(checked.error());
  return state;
}

// The newest that is whole and of this job. A damaged one is passed over with a notice: the one before it is
// kept for that.
Result<OptionalPoint> newest(const fs::path& directory, CheckpointKind kind, const std::string& job_uid,
                             std::vector<std::string>& notices) {
  auto complete = complete_checkpoints(directory, kind);
  if (!complete) return tl::unexpected(complete.error());
  std::vector<Failure> damage;
  for (auto folder = complete->rbegin(); folder != complete->rend(); ++folder) {
    auto state = read_whole(folder->path, kind);
    if (!state && state.error().code == contract::ExitCode::kStorage) {
      damage.push_back(state.error());
      continue;
    }
    if (!state) return tl::unexpected(state.error());
    if (kind == CheckpointKind::kRecovery && state->job_uid != job_uid) continue;
    for (const Failure& failure : damage) notices.push_back(failure.message + " It is passed over.");
    return OptionalPoint(ResumePoint{folder->path, kind, *state});
  }
  // To begin anew instead would throw away what a person may yet save.
  if (!damage.empty()) return tl::unexpected(damage.front());
  return OptionalPoint();
}

constexpr int64_t kMostRanks = 1'000'000;
constexpr int64_t kMostCounted = int64_t{1} << 53;

// A count as this program writes it; another number means that somebody else wrote there.
int64_t count(const nlohmann::json& json, const char* key, int64_t most = kMostCounted) {
  const nlohmann::json& value = json.at(key);
  if (!value.is_number_integer() || value < 0 || value > most) throw std::out_of_range(key);
  return value.get<int64_t>();
}

Result<ResumeDecision> latest_of_any_run(const ResumeRequest& request) {
  ResumeDecision decision;
  auto user = newest(request.project_folder, CheckpointKind::kUser, request.job_uid, decision.notices);
  if (!user) return tl::unexpected(user.error());
  decision.point = *user;
  if (request.job_uid.empty()) {
    auto recovery =
        newest(request.recovery_folder, CheckpointKind::kRecovery, request.job_uid, decision.notices);
    if (!recovery) return tl::unexpected(recovery.error());
    if (*recovery && (!decision.point || (*recovery)->state.step >= decision.point->state.step)) {
      decision.point = *recovery;
    }
  }
  if (!decision.point) {
    decision.notices.push_back("resume_from_checkpoint is '" + *request.resume_from_checkpoint +
                               "', but there is no complete checkpoint in " +
                               request.project_folder.string() + ": training starts fresh.");
  }
  return decision;
}

Result<ResumeDecision> checkpoint_at(const ResumeRequest& request) {
  fs::path path = *request.resume_from_checkpoint;
  std::error_code ignored;
  if (!fs::exists(path, ignored) && path.is_relative()) path = request.project_folder / path;
  if (!is_complete(path)) {
    const std::string why = fs::exists(path, ignored)
                                ? "has no COMMIT marker: it is not a complete checkpoint"
                                : "does not exist";
    return bad_input("resume_from_checkpoint: " + *request.resume_from_checkpoint + " " + why +
                     "; name a checkpoint-N folder that this program has finished writing, or use 'auto'.");
  }
  const bool recovery = parse_checkpoint_name(CheckpointKind::kRecovery, path).has_value();
  const auto kind = recovery ? CheckpointKind::kRecovery : CheckpointKind::kUser;
  auto state = read_whole(path, kind);
  if (!state) return tl::unexpected(state.error());
  return ResumeDecision{ResumePoint{path, kind, *state}, {}};
}

}  // namespace

std::string to_json(const RunState& state) {
  const nlohmann::ordered_json json = {{"version", 1},
                                       {"step", state.step},
                                       {"consumed", state.consumed},
                                       {"tokens_seen", state.tokens_seen},
                                       {"world_size", state.world_size},
                                       {"sharded", state.sharded},
                                       {"peft", state.peft},
                                       {"attempt", state.attempt},
                                       {"job_uid", state.job_uid}};
  return json.dump(2) + "\n";
}

Result<RunState> read_run_state(const fs::path& checkpoint) {
  auto text = read_text(checkpoint / kStateFile);
  if (!text) return tl::unexpected(text.error());
  try {
    const auto json = nlohmann::json::parse(*text);
    if (json.at("version") != 1) {
      return bad_input("The checkpoint " + checkpoint.string() +
                       " was written by a newer version of this program.");
    }
    const RunState state{count(json, "step"),        count(json, "consumed"),
                         count(json, "tokens_seen"), static_cast<int>(count(json, "world_size", kMostRanks)),
                         json.at("sharded"),         json.at("peft"),
                         count(json, "attempt"),     json.at("job_uid")};
    if (state.world_size > 0) return state;
  } catch (const nlohmann::json::exception&) {
  } catch (const std::out_of_range&) {
  }
  return tl::unexpected(damaged(checkpoint, kStateFile));
}

Result<ResumeDecision> decide_resume(const ResumeRequest& request) {
  std::vector<std::string> notices;
  if (!request.job_uid.empty()) {
    auto recovery = newest(request.recovery_folder, CheckpointKind::kRecovery, request.job_uid, notices);
    if (!recovery) return tl::unexpected(recovery.error());
    if (*recovery) return ResumeDecision{*recovery, notices};
  }
  if (!request.resume_from_checkpoint) return ResumeDecision{std::nullopt, notices};
  const std::string& wish = *request.resume_from_checkpoint;
  auto decision = wish == "auto" || wish == "true" || wish == "latest" ? latest_of_any_run(request)
                                                                       : checkpoint_at(request);
  if (decision) decision->notices.insert(decision->notices.begin(), notices.begin(), notices.end());
  return decision;
}

}  // namespace coxswain
