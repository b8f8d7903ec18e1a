#include "runtime/train/saves.h"

#include "runtime/checkpoint/commit.h"
#include "runtime/checkpoint/rank_state.h"
#include "runtime/checkpoint/test_hold.h"
#include "runtime/train/outputs.h"

namespace coxswain {
namespace {

CheckpointTarget target_of(const TrainingSession& session, CheckpointKind kind) {
  const auto& folders = session.folders;
  return {kind, kind == CheckpointKind::kUser ? folders.project : folders.recovery, session.position.step,
          session.ranks.job.attempt, folders.recovery};
}

// Rank 0's part of a user save: what transformers or peft loads. All ranks take part in the gather.
Result<void> write_loadable(TrainingSession& session, const std::filesystem::path& folder) {
  const auto parameters = session.strategy->full_parameters(session.config.peft);
  if (!session.leads()) return {};
  if (auto done = write_model_or_adapter(session.config, folder, parameters); !done) return done;
  return write_trainer_state(session, folder, nullptr);
}

Result<void> write_parts(TrainingSession& session, const CheckpointTarget& target) {
  const auto folder = target.temporary_path();
  const int rank = session.ranks.rank;
  test_hold("begun", rank, target.step);
  Result<void> written;
  if (target.kind == CheckpointKind::kUser) written = write_loadable(session, folder);
  if (written && session.leads()) written = write_durably(folder / kStateFile, to_json(session.state()));
  if (written) written = save_rank_state(folder, target.kind, *session.strategy, *session.optimizer);
  test_hold("rank", rank, target.step);
  return written;
}

Result<void> remove_surplus(const TrainingSession& session, const CheckpointTarget& target) {
  const int limit =
      target.kind == CheckpointKind::kUser ? session.config.save.total_limit : kRecoveryCheckpointsKept;
  auto complete = complete_checkpoints(target.directory, target.kind);
  if (!complete) return tl::unexpected(complete.error());
  for (const CheckpointFolder& folder : surplus_checkpoints(*complete, limit, {target.step})) {
    if (auto deleted = delete_checkpoint(folder.path); !deleted) return deleted;
  }
  return {};
}

// metrics.jsonl must not lag behind a checkpoint when the machine loses power: a run that goes on adds to it.
Result<void> make_metrics_durable(const TrainingSession& session) {
  const auto metrics = session.folders.project / "metrics.jsonl";
  return std::filesystem::exists(metrics) ? make_durable(metrics) : Result<void>();
}

Result<void> commit(const TrainingSession& session, const CheckpointTarget& target) {
  if (auto durable = make_metrics_durable(session); !durable) return durable;
  if (auto committed = commit_checkpoint(target); !committed) return committed;
  return remove_surplus(session, target);
}

}  // namespace

bool user_save_due(const SaveConfig& save, const StepPlan& plan, const TrainPosition& before,
                   const TrainPosition& after) {
  const bool last = after.step == plan.total_steps;
  switch (save.strategy) {
    case SaveStrategy::kNo:
      return false;
    case SaveStrategy::kSteps:
      return last || after.step % save.steps == 0;
    case SaveStrategy::kEpoch:
      return last || plan.ends_epoch(before.consumed, after.consumed);
  }
  return false;
}

Result<void> save_checkpoint(TrainingSession& session, CheckpointKind kind) {
  const CheckpointTarget target = target_of(session, kind);
  ParallelStrategy& strategy = *session.strategy;
  session.progress.phase(Phase::kSave);
  Result<void> mine;
  auto already = torch::zeros({1}, torch::kInt64);
  if (session.leads()) {
    if (kind == CheckpointKind::kRecovery && is_complete(target.final_path())) already.fill_(1);
    if (already.item<int64_t>() == 0) mine = begin_checkpoint(target);
  }
  if (auto all = agree_on_success(strategy, mine); !all) return all;
  strategy.all_reduce_sum(already);
  if (already.item<int64_t>() == 0) {
    if (auto all = agree_on_success(strategy, write_parts(session, target)); !all) return all;
    if (session.leads()) mine = commit(session, target);
    if (auto all = agree_on_success(strategy, mine); !all) return all;
  }
  if (session.leads()) session.progress.checkpoint(target.step);
  session.progress.phase(Phase::kTrain);
  return {};
}

}  // namespace coxswain
