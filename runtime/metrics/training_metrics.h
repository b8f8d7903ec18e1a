// All places that a training step is reported to, behind one call. Rank 0 makes one; other ranks use a
// ProgressPipe alone.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "contract/result.h"
#include "runtime/metrics/metrics_jsonl.h"
#include "runtime/metrics/progress_pipe.h"
#include "runtime/metrics/tensorboard_writer.h"
#include "runtime/metrics/terminal_line.h"

namespace coxswain {

struct TrainingMetricsOptions {
  std::filesystem::path project_folder;  // metrics.jsonl and runs/ (TensorBoard) lie in it
  bool tensorboard = true;
  // Optimizer steps done before this run; records of an earlier run after it are dropped.
  int64_t resume_step = 0;
  int64_t total_steps = 0;
  int64_t logging_steps = 1;  // settled, ≥ 1
  std::FILE* terminal = stdout;
};

class TrainingMetrics {
 public:
  // `progress` must outlive this.
  static Result<TrainingMetrics> open(const TrainingMetricsOptions& options, const ProgressPipe& progress);

  // Every optimizer step, in order. Fails with kStorage where a file can't be written.
  Result<void> step(const StepRecord& record);

  // Prints a line without spoiling the progress line.
  void message(const std::string& text);
  void finish();

 private:
  TrainingMetrics(const TrainingMetricsOptions& options, const ProgressPipe& progress, MetricsJsonl jsonl,
                  std::optional<TensorBoardWriter> tensorboard);

  MetricsJsonl jsonl_;
  std::optional<TensorBoardWriter> tensorboard_;
  std::unique_ptr<TerminalLine> terminal_;
  const ProgressPipe* progress_;
  int64_t total_steps_;
};

}  // namespace coxswain
