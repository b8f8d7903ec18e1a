#include "operator/reconcile/suspend.h"

#include "operator/reconcile/reasons.h"

namespace coxswain {

TrainingJobStatus suspended_status(TrainingJobStatus status, bool has_pods, const Mark& mark) {
  if (status.start_time) {
    status.start_time.reset();
    status.startup_time.reset();
    status.attempt += 1;
  }
  const int64_t desired = status.nodes.desired;
  status.nodes = NodesStatus();
  status.nodes.desired = desired;
  return has_pods ? as_suspending(std::move(status), mark) : as_suspended(std::move(status), mark);
}

TrainingJobStatus started_status(const TrainingJob& job, const Settings& settings, const Mark& mark) {
  TrainingJobStatus status = as_resumed(job.status, mark);
  status.start_time = std::chrono::floor<std::chrono::seconds>(mark.now);
  const bool takes_default_image = job.spec.has_config() && job.spec.image.empty();
  if (takes_default_image && status.runtime_image.empty()) status.runtime_image = settings.runtime_image;
  return as_starting(std::move(status), {kReasonStarting, "The pods are being created."}, mark);
}

}  // namespace coxswain
