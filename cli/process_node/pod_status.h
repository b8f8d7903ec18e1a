// The status of a pod as a kubelet writes it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/api/training_job.h"

namespace coxswain {

struct ContainerRun {
  std::string name;
  std::string image;
  bool init = false;
  std::optional<TimePoint> started;
  std::optional<TimePoint> finished;
  int exit_code = 0;
  std::string reason;   // Completed, Error, StartError
  std::string message;  // the termination message
};

// `containers` in the order in which they run; the last is the trainer.
Json pod_status(const std::vector<ContainerRun>& containers, TimePoint pod_started);

}  // namespace coxswain
