// What a controller tells of itself while it works, for metrics. One seam: its queue's figures too.
#pragma once

#include <chrono>

#include "operator/client/clock.h"
#include "operator/controller/work_queue.h"

namespace coxswain {

enum class PassResult {
  kSuccess,       // what the job needs now is done
  kRequeueAfter,  // so far done; the time of the next pass is set
  kRequeue,       // the job changed under the pass, or a child was refused: looked at again at once
  kError,         // a write got no answer or the pass failed: tried again after a back-off
};

// Called from the controller's threads, several at a time, and perhaps under its locks: an observer must not
// call the controller. One that does nothing is the default of each.
class ControllerObserver : public WorkQueueMetrics {
 public:
  virtual void pass_ended(PassResult, std::chrono::steady_clock::duration) {}
  // A TrainingJob as the API server has it, before and after a change that a watch or an own write brought;
  // null where it appears (also when the operator starts) or goes. Each change once, in their order.
  virtual void job_changed(const Json& /*before*/, const Json& /*after*/, TimePoint /*now*/) {}
  // The last missing pod of the job's present attempt has been created.
  virtual void pods_created(const TrainingJob&, TimePoint /*now*/) {}
};

}  // namespace coxswain
