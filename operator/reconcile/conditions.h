// The conditions and the phase that go with each state of a job.
#pragma once

#include <string>

#include "operator/api/training_job.h"

namespace coxswain {

// The moment and generation that changed conditions are marked with.
struct Mark {
  TimePoint now;
  int64_t generation = 0;
};

// What a state says about itself.
struct Words {
  std::string reason;  // CamelCase
  std::string message;
};

inline constexpr char kAllPodsRun[] = "All pods of the attempt run.";

// Each returns `status` with the conditions and phase of that state. Restarting and Suspended appear once
// they have been true; Running, Ready, Reconciling and Stalled always.
TrainingJobStatus as_starting(TrainingJobStatus status, const Words& words, const Mark& mark);
// `message` is kAllPodsRun, and after it what is amiss though they run.
TrainingJobStatus as_running(TrainingJobStatus status, const std::string& message, const Mark& mark);
TrainingJobStatus as_restarting(TrainingJobStatus status, const Words& words, const Mark& mark);
TrainingJobStatus as_suspending(TrainingJobStatus status, const Mark& mark);
TrainingJobStatus as_suspended(TrainingJobStatus status, const Mark& mark);
TrainingJobStatus as_resumed(TrainingJobStatus status, const Mark& mark);
// Cannot go on for now, but could if someone acted.
TrainingJobStatus as_stalled(TrainingJobStatus status, const Words& words, const Mark& mark);
// Terminal.
TrainingJobStatus as_complete(TrainingJobStatus status, const Words& words, const Mark& mark);
TrainingJobStatus as_failed(TrainingJobStatus status, const Words& words, const Mark& mark);

}  // namespace coxswain
