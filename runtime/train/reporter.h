// Reports a run: rank 0 to files, terminal and agent, other ranks to their agent.
#pragma once

#include <memory>
#include <optional>

#include "contract/result.h"
#include "runtime/metrics/training_metrics.h"
#include "runtime/train/outputs.h"
#include "runtime/train/session.h"

namespace coxswain {

class Reporter {
 public:
  // Says what is about to be trained. `session` must outlive this.
  static Result<Reporter> open(TrainingSession& session);

  // The first forward is about to begin: notes the moment in the log and returns it (unix seconds).
  double first_forward();
  Result<void> step(const StepRecord& record);
  void stopped();
  void done(const RunStatistics& statistics);

 private:
  explicit Reporter(TrainingSession& session) : session_(&session) {}

  TrainingSession* session_;
  bool warned_of_loss_ = false;
  std::unique_ptr<TrainingMetrics> metrics_;  // rank 0's
};

}  // namespace coxswain
