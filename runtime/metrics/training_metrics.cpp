#include "runtime/metrics/training_metrics.h"

#include <utility>

namespace coxswain {

TrainingMetrics::TrainingMetrics(const TrainingMetricsOptions& options, const ProgressPipe& progress,
                                 MetricsJsonl jsonl, std::optional<TensorBoardWriter> tensorboard)
    : jsonl_(std::move(jsonl)),
      tensorboard_(std::move(tensorboard)),
      terminal_(std::make_unique<TerminalLine>(options.terminal, options.resume_step, options.total_steps,
                                               options.logging_steps)),
      progress_(&progress),
      total_steps_(options.total_steps) {}

Result<TrainingMetrics> TrainingMetrics::open(const TrainingMetricsOptions& options,
                                              const ProgressPipe& progress) {
  Result<MetricsJsonl> jsonl =
      MetricsJsonl::open(options.project_folder / "metrics.jsonl", options.resume_step);
  if (!jsonl) return tl::unexpected(jsonl.error());
  std::optional<TensorBoardWriter> tensorboard;
  if (options.tensorboard) {
    Result<TensorBoardWriter> writer =
        TensorBoardWriter::open(options.project_folder / "runs", options.resume_step);
    if (!writer) return tl::unexpected(writer.error());
    tensorboard = *std::move(writer);
  }
  return TrainingMetrics(options, progress, *std::move(jsonl), std::move(tensorboard));
}

Result<void> TrainingMetrics::step(const StepRecord& record) {
  progress_->step(record, total_steps_);
  terminal_->step(record);
  Result<void> written = jsonl_.append(record);
  if (written && tensorboard_) written = tensorboard_->add(record);
  return written;
}

void TrainingMetrics::message(const std::string& text) {
  terminal_->message(text);
}

void TrainingMetrics::finish() {
  terminal_->finish();
}

}  // namespace coxswain
