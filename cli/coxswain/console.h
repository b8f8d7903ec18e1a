// What a person sees of a run: log lines by pod, what changed in the job's status, and on a terminal one line
// that moves.
#pragma once

#include <cstdio>
#include <optional>
#include <string>

#include "operator/api/training_job.h"
#include "operator/reconcile/plan.h"

namespace coxswain {

// The progress line's text, for a width of `columns`; empty while there is no step.
std::string progress_text(const TrainingJobStatus& status, TimePoint now, size_t columns);

class Console {
 public:
  // `out` isn't owned. On a terminal the progress line is drawn.
  explicit Console(std::FILE* out);
  ~Console();

  void log(const std::string& pod, const std::string& line);
  // One of our own sentences.
  void say(const std::string& sentence);
  // Says what is new in `status` since the last call.
  void show(const TrainingJobStatus& status, TimePoint now);

 private:
  void print(const std::string& line);
  void clear_progress();
  void draw_progress();

  std::FILE* out_;
  const bool terminal_;
  std::string progress_;
  bool drawn_ = false;
  std::optional<TrainingJobStatus> shown_;
};

}  // namespace coxswain
