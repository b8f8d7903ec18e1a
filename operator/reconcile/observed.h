// What a pass sees of the world. Read from the API server (and from rank 0's agent), never remembered, but
// for what the last tries to create children met.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/api/training_job.h"

namespace coxswain {

enum class PodPhase { kPending, kRunning, kSucceeded, kFailed, kUnknown };

// How the container `trainer` ended.
struct Termination {
  int64_t exit_code = 0;
  int64_t signal = 0;
  std::string reason;                 // the kubelet's: Completed, Error, OOMKilled, …
  std::string message;                // the termination message: the runtime's last error
  std::optional<TimePoint> finished;  // the node's clock
};

// A pod of this job, of any attempt.
struct ObservedPod {
  std::string name;
  std::string uid;
  int64_t attempt = 0;
  int64_t node_rank = 0;
  PodPhase phase = PodPhase::kPending;
  bool ready = false;
  std::optional<TimePoint> created;
  std::optional<TimePoint> deletion_time;  // metadata.deletionTimestamp: terminating; the end of its grace
  std::string reason;                      // status.reason: Evicted, NodeLost, …
  std::string message;
  std::string disruption;      // reason of the condition DisruptionTarget where it is True
  std::string waiting_reason;  // ImagePullBackOff, Unschedulable, … while it has not started
  std::string waiting_message;
  std::optional<Termination> termination;  // of the container `trainer`
  std::string spec_fingerprint;            // annotation kAnnotationSpec, see render.h

  bool terminating() const { return deletion_time.has_value(); }
};

// Rank 0's progress as its agent served it.
struct Progress {
  int64_t step = 0;
  std::optional<int64_t> total_steps;
  std::optional<double> epoch;
  std::optional<double> loss;  // may be NaN
  std::optional<double> tokens_per_second;
  std::optional<int64_t> last_checkpoint_step;
  std::optional<TimePoint> updated;
};

// A child that could not be created because its name is taken by an object that is not this job's.
struct NameConflict {
  std::string kind;
  std::string name;
};

// A child that the API server refused.
struct Rejection {
  std::string kind;
  std::string name;
  std::string message;     // the server's
  bool permanent = false;  // 400 or 422: the same again would be refused again; else quota, 429, 5xx
};

struct Observed {
  std::vector<ObservedPod> pods;          // all whose controller is this job's UID
  bool has_service = false;               // ours
  std::set<int64_t> config_map_attempts;  // attempts whose ConfigMap exists, ours
  std::optional<Progress> progress;       // of this attempt; absent: not asked, or no answer
  // What creating children met since the last time it was tried. An entry stays until the create is due again
  // (Plan::requeue_after, or the controller's own backoff) and is dropped just before that pass; while there
  // is one, nothing is created.
  std::vector<NameConflict> conflicts;
  std::vector<Rejection> rejections;
};

// A v1 Pod as the API server has it.
ObservedPod observe_pod(const Json& pod);

// Whether the object's controller is this job (by UID).
bool is_controlled_by(const Json& object, const std::string& job_uid);

// Objects as a store hands them out: shared, not copied; none is null.
using Objects = std::vector<std::shared_ptr<const Json>>;

// Everything from lists of v1 objects (services and config maps: their metadata is enough); those of other
// owners are skipped. Progress, conflicts and rejections are left empty.
Observed observe(const TrainingJob& job, const Objects& pods, const Objects& services,
                 const Objects& config_maps);

// The answer of an agent's GET /progress; nothing where it is of another attempt or has no step yet.
std::optional<Progress> parse_progress(const Json& answer, int64_t attempt);

}  // namespace coxswain
