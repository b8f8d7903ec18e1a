#include "runtime/train/reporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/train/clock.h"

namespace coxswain {
namespace {

std::string describe(const TrainingSession& session) {
  int64_t total = 0;
  int64_t trainable = 0;
  for (const auto& parameter : session.model->parameters()) {
    total += parameter.numel();
    if (parameter.requires_grad()) trainable += parameter.numel();
  }
  const TrainConfig& config = session.config;
  const char* how = session.ranks.world_size == 1 ? "one process"
                    : session.strategy->sharded() ? "ZeRO-3"
                                                  : "DDP";
  return fmt::format(
      "Training {:.2f} M of {:.2f} M parameters of {} on {} rows ({} tokens): {} steps of {} rows, {} "
      "({} rank{}).",
      trainable / 1e6, total / 1e6, config.base_model, session.dataset.size(), session.dataset.tokens(),
      session.plan.total_steps, session.plan.rows_per_micro_step * config.gradient_accumulation, how,
      session.ranks.world_size, session.ranks.world_size == 1 ? "" : "s");
}

}  // namespace

Result<Reporter> Reporter::open(TrainingSession& session) {
  Reporter reporter(session);
  if (!session.leads()) return reporter;
  if (auto opened = session.log.open(session.folders.project / "train.log"); !opened) {
    return tl::unexpected(opened.error());
  }
  session.log.say(describe(session));
  TrainingMetricsOptions options;
  options.project_folder = session.folders.project;
  options.tensorboard = session.config.logging.tensorboard;
  options.resume_step = session.position.step;
  options.total_steps = session.plan.total_steps;
  options.logging_steps = session.config.logging.steps > 0
                              ? session.config.logging.steps
                              : derived_logging_steps(session.dataset.size(), session.config.batch_size);
  auto metrics = TrainingMetrics::open(options, session.progress);
  if (!metrics) return tl::unexpected(metrics.error());
  reporter.metrics_ = std::make_unique<TrainingMetrics>(std::move(*metrics));
  session.log.print_through(
      [metrics = reporter.metrics_.get()](const std::string& text) { metrics->message(text); });
  return reporter;
}

double Reporter::first_forward() {
  const double now = unix_seconds();
  session_->log.note(fmt::format("first_forward unix_seconds={:.6f}", now));
  return now;
}

Result<void> Reporter::step(const StepRecord& record) {
  if (!std::isfinite(record.loss) && !warned_of_loss_) {
    warned_of_loss_ = true;
    session_->log.say(
        fmt::format("Warning: the loss is {} at step {}: training has diverged, or the model holds such "
                    "numbers. Try a lower lr.",
                    record.loss, record.step));
  }
  if (metrics_) return metrics_->step(record);
  session_->progress.step(record, session_->plan.total_steps);
  return {};
}

void Reporter::stopped() {
  session_->log.say(
      fmt::format("Stopped on request after step {}; a checkpoint is saved{}.", session_->position.step,
                  session_->ranks.job.uid.empty() ? " (resume_from_checkpoint: auto goes on from it)"
                                                  : ", and training goes on from it"));
  if (metrics_) metrics_->finish();
}

void Reporter::done(const RunStatistics& statistics) {
  const auto most = std::max_element(statistics.peak_rss_mib.begin(), statistics.peak_rss_mib.end());
  session_->log.say(fmt::format("Done after step {}: the result is in {} (peak_rss_mib={} of a rank).",
                                session_->position.step, session_->folders.project.string(), *most));
  if (metrics_) metrics_->finish();
  session_->progress.phase(Phase::kDone);
}

}  // namespace coxswain
