// Where the controller asks how far training is.
#pragma once

#include <optional>

#include "operator/api/training_job.h"

namespace coxswain {

class ProgressReader {
 public:
  virtual ~ProgressReader() = default;
  // What the agent of `pod` (a v1 Pod) answers to GET /progress; nothing when it doesn't, within a second.
  virtual std::optional<Json> read(const Json& pod) = 0;
};

}  // namespace coxswain
