#include "runtime/checkpoint/run_state.h"

#include <nlohmann/json.hpp>

#include "runtime/checkpoint/commit.h"

namespace coxswain {
namespace fs = std::filesystem;
namespace {

using OptionalPoint = std::optional<ResumePoint>;

// The newest whose state can be read and is of this job.
Result<OptionalPoint> newest(const fs::path& directory, CheckpointKind kind, const std::string& job_uid) {
  auto complete = complete_checkpoints(directory, kind);
  if (!complete) return tl::unexpected(complete.error());
  for (auto folder = complete->rbegin(); folder != complete->rend(); ++folder) {
    auto state = read_run_state(folder->path);
    if (!state) return tl::unexpected(state.error());
    if (kind == CheckpointKind::kRecovery && state->job_uid != job_uid) continue;
    return OptionalPoint(ResumePoint{folder->path, kind, *state});
  }
  return OptionalPoint();
}

Result<ResumeDecision> latest_of_any_run(const ResumeRequest& request) {
  auto user = newest(request.project_folder, CheckpointKind::kUser, request.job_uid);
  if (!user) return tl::unexpected(user.error());
  ResumeDecision decision{*user, {}};
  if (request.job_uid.empty()) {
    auto recovery = newest(request.recovery_folder, CheckpointKind::kRecovery, request.job_uid);
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
  if (!fs::exists(path) && path.is_relative()) path = request.project_folder / path;
  if (!is_complete(path)) {
    const std::string why =
        fs::exists(path) ? "has no COMMIT marker: it is not a complete checkpoint" : "does not exist";
    return bad_input("resume_from_checkpoint: " + *request.resume_from_checkpoint + " " + why +
                     "; name a checkpoint-N folder that this program has finished writing, or use 'auto'.");
  }
  auto state = read_run_state(path);
  if (!state) return tl::unexpected(state.error());
  const bool recovery = parse_checkpoint_name(CheckpointKind::kRecovery, path).has_value();
  return ResumeDecision{
      ResumePoint{path, recovery ? CheckpointKind::kRecovery : CheckpointKind::kUser, *state}, {}};
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
    return RunState{json.at("step"),    json.at("consumed"), json.at("tokens_seen"), json.at("world_size"),
                    json.at("sharded"), json.at("peft"),     json.at("attempt"),     json.at("job_uid")};
  } catch (const nlohmann::json::exception&) {
    return fail(contract::ExitCode::kStorage, "The checkpoint " + checkpoint.string() + " is damaged: its " +
                                                  kStateFile + " cannot be read.");
  }
}

Result<ResumeDecision> decide_resume(const ResumeRequest& request) {
  if (!request.job_uid.empty()) {
    auto recovery = newest(request.recovery_folder, CheckpointKind::kRecovery, request.job_uid);
    if (!recovery) return tl::unexpected(recovery.error());
    if (*recovery) return ResumeDecision{*recovery, {}};
  }
  if (!request.resume_from_checkpoint) return ResumeDecision{};
  const std::string& wish = *request.resume_from_checkpoint;
  if (wish == "auto" || wish == "true" || wish == "latest") return latest_of_any_run(request);
  return checkpoint_at(request);
}

}  // namespace coxswain
