// The wall clock, injected wherever time is read, so that tests and simulations own it.
#pragma once

#include <functional>

#include "operator/api/training_job.h"

namespace coxswain {

using Clock = std::function<TimePoint()>;

inline TimePoint system_time() {
  return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
}

}  // namespace coxswain
