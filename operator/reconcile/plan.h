// What a pass decided. The controller carries it out in this order and stops at the first failure: status
// (with the job's resourceVersion), actions in their order, events; then it comes back after requeue_after or
// when woken.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "operator/api/training_job.h"

namespace coxswain {

// POST of a Service, ConfigMap or Pod. 409 → GET: ours and this attempt → done; ours but older or terminating
// → wait for the next pass; anyone else's → Observed::conflicts.
struct CreateChild {
  std::string kind;  // "Service", "ConfigMap", "Pod"
  std::string name;
  Json object;
};

// Preconditions: uid. 404 and a failed precondition mean it is done.
struct DeletePod {
  std::string name;
  std::string uid;
  std::optional<int64_t> grace_seconds;  // absent: the pod's own; 0: forced, its node being lost
};

// A ConfigMap of an earlier attempt, or what is left of a job that is over. Only if it is this job's.
struct DeleteChild {
  std::string kind;  // "Service", "ConfigMap"
  std::string name;
};

// The job itself, its time to live being over. Preconditions: uid. Children go by garbage collection.
struct DeleteJob {
  std::string uid;
};

using Action = std::variant<CreateChild, DeletePod, DeleteChild, DeleteJob>;

enum class EventType { kNormal, kWarning };

struct Event {
  EventType type = EventType::kNormal;
  std::string reason;   // CamelCase, stable
  std::string message;  // at most 1024 characters
};

struct Plan {
  std::optional<TrainingJobStatus> status;  // absent: nothing to write
  std::vector<Action> actions;
  std::vector<Event> events;
  std::optional<Duration> requeue_after;  // absent: nothing is due by time alone
};

}  // namespace coxswain
