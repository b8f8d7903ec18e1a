// The training loop: a step is fetch → agree → forward and backward → clip → update → report → save.
#include "runtime/train/train.h"

#include <cmath>
#include <limits>

#include "runtime/optim/clip.h"
#include "runtime/optim/schedule.h"
#include "runtime/train/clock.h"
#include "runtime/train/environment_report.h"
#include "runtime/train/outputs.h"
#include "runtime/train/reporter.h"
#include "runtime/train/saves.h"
#include "runtime/train/session.h"
#include "runtime/train/step.h"
#include "runtime/train/stop_request.h"

namespace coxswain {
namespace {

// A NaN without the sign that arithmetic happens to leave on it.
double plain_nan(double value) {
  return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
}

// Returns the step's record, timed by a watch that began with the fetching of its rows; the session's
// position is then after it.
StepRecord train_step(TrainingSession& session, const StepBatches& batches, const StepAgreement& agreed,
                      const Stopwatch& watch) {
  StepRecord record;
  record.learning_rate =
      learning_rate(session.config.optimizer, session.position.step, session.plan.total_steps);
  record.loss = plain_nan(forward_backward(session, batches, agreed.targets));
  auto trainable = session.strategy->trainable();
  record.grad_norm =
      plain_nan(clip_by_global_norm(*session.strategy, trainable, session.config.optimizer.max_grad_norm));
  session.optimizer->step(trainable, record.learning_rate);
  session.strategy->zero_grad();

  session.position.step += 1;
  session.position.consumed +=
      static_cast<int64_t>(batches.micro_batches.size()) * session.plan.rows_per_micro_step;
  session.tokens_seen += agreed.tokens;
  record.step = session.position.step;
  record.epoch = session.plan.epoch(session.position.consumed);
  record.tokens = agreed.tokens;
  record.step_seconds = watch.seconds();
  record.tokens_per_second = static_cast<double>(agreed.tokens) / record.step_seconds;
  record.rss_mib = current_rss_mib();
  return record;
}

Result<TrainOutcome> train_to_the_end(TrainingSession& session, Reporter& reporter) {
  IntervalTimer recovery_due(session.ranks.job.recovery_interval_seconds);
  double first_forward_unix_seconds = 0;
  std::optional<double> last_loss;  // none when all steps were done before
  session.progress.phase(Phase::kTrain);
  while (session.position.step < session.plan.total_steps) {
    Stopwatch watch;
    const StepBatches batches = fetch_step(session);
    const StepAgreement agreed = agree_on_step(*session.strategy, batches, stop_requested(),
                                               session.leads() && recovery_due.elapsed());
    if (agreed.stop || agreed.save_recovery) {
      if (auto saved = save_checkpoint(session, CheckpointKind::kRecovery); !saved)
        return tl::unexpected(saved.error());
      recovery_due.restart();
      watch = Stopwatch();  // the save is no part of the step's time
    }
    if (agreed.stop) {
      reporter.stopped();
      return TrainOutcome::kStopped;
    }
    if (first_forward_unix_seconds == 0) first_forward_unix_seconds = reporter.first_forward();

    const TrainPosition before = session.position;
    const StepRecord record = train_step(session, batches, agreed, watch);
    last_loss = record.loss;
    if (auto reported = reporter.step(record); !reported) return tl::unexpected(reported.error());
    if (user_save_due(session.config.save, session.plan, before, session.position)) {
      if (auto saved = save_checkpoint(session, CheckpointKind::kUser); !saved)
        return tl::unexpected(saved.error());
    }
  }
  const RunStatistics statistics = gather_statistics(session, first_forward_unix_seconds);
  session.progress.phase(Phase::kSave);
  if (auto written = write_final_outputs(session, statistics, last_loss); !written) {
    return tl::unexpected(written.error());
  }
  reporter.done(statistics);
  return TrainOutcome::kDone;
}

}  // namespace

Result<TrainOutcome> train(const TrainConfig& config, const RankEnvironment& ranks,
                           const ProgressPipe& progress) {
  progress.phase(Phase::kLoad);
  RunLog log(ranks.rank);
  log.say(short_environment_report());
  for (const std::string& notice : config.notices) log.say(notice);
  const auto folders = settle_folders(config, ranks.job);
  if (!folders) return tl::unexpected(folders.error());
  if (is_finished(folders->recovery, ranks.job.uid, ranks.job.attempt)) {
    log.say("An earlier attempt of this job has finished it; there is nothing left to do.");
    return TrainOutcome::kDone;
  }
  auto session = prepare_session(config, ranks, *folders, progress, log);
  if (!session) return tl::unexpected(session.error());
  stop_at_step_boundaries();
  auto reporter = Reporter::open(**session);
  if (!reporter) return tl::unexpected(reporter.error());
  return train_to_the_end(**session, *reporter);
}

}  // namespace coxswain
