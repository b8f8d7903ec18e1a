// What a pass sees of the world. Read from the API server (and from rank 0's agent), never remembered, but
// for what the last tries to create children met.
#pragma once

#include <functional>
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

// What keeps a container that has not started, in the kubelet's words.
struct Waiting {
  std::string container;  // empty: the pod as a whole (the scheduler's words)
  bool init = false;      // an init container
  std::string reason;     // ImagePullBackOff, CreateContainerConfigError, Unschedulable, …
  std::string message;
};

// An init container that ended with another code than 0.
struct FailedInit {
  std::string container;
  int64_t exit_code = 0;
  std::string message;
};

// The node of a pod, as the node controller or the kubelet last told.
struct ObservedNode {
  bool ready = true;               // the condition Ready is True
  std::optional<TimePoint> since;  // that condition's last transition
  std::string reason;              // NodeStatusUnknown, KubeletNotReady, …
  std::string message;
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
  std::optional<int64_t> deletion_grace_seconds;  // of that deletion: it began so long before
  std::vector<std::string> finalizers;
  std::string node;  // spec.nodeName; empty: not bound yet
  // The node that `node` names; absent: not bound, or nothing is known of it.
  std::optional<ObservedNode> node_seen;
  std::string reason;  // status.reason: Evicted, NodeLost, …
  std::string message;
  std::string disruption;                  // reason of the condition DisruptionTarget where it is True
  std::optional<Waiting> waiting;          // while something keeps it from starting
  std::string running_init;                // the init container that runs now
  std::optional<FailedInit> failed_init;   // of a pod that failed before its trainer started
  std::optional<TimePoint> bound;          // when the scheduler gave it its node
  bool sandbox_missing = false;            // the condition PodReadyToStartContainers is False
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
};

// How far a rank has come.
struct RankPosition {
  int64_t rank = 0;
  std::string phase;  // load, rendezvous, train, save, done
  std::optional<int64_t> step;
};

// What the agent of a pod says of its ranks.
struct AgentAnswer {
  std::string pod;
  int64_t node_rank = 0;
  std::optional<std::vector<RankPosition>> ranks;  // absent: no answer
};

// A child that could not be created because its name is taken by an object that is not this job's.
struct NameConflict {
  std::string kind;
  std::string name;
  // That of a job of the same name that has been deleted, which garbage collection has yet to delete.
  bool of_predecessor = false;
};

// A child that the API server refused.
struct Rejection {
  std::string kind;
  std::string name;
  std::string message;     // the server's
  bool permanent = false;  // 400 or 422: the same again would be refused again; else quota, 429, 5xx
  int code = 403;          // the HTTP status
  TimePoint time{};        // of the last refusal
  int64_t times = 1;       // refusals in a row
  std::optional<Duration> retry_after{};  // what the server asked for
};

struct Observed {
  std::vector<ObservedPod> pods;          // all whose controller is this job's UID
  bool has_service = false;               // ours
  std::set<int64_t> config_map_attempts;  // attempts whose ConfigMap exists, ours
  std::optional<Progress> progress;       // of this attempt; absent: not asked, or no answer
  // When an agent of this attempt last told of something new, by the operator's clock; absent: not since it
  // began to ask.
  std::optional<TimePoint> moved;
  // When one of this attempt first answered this operator; absent: none has.
  std::optional<TimePoint> heard;
  std::vector<AgentAnswer> agents;  // of this attempt, when last asked; empty: only rank 0's was asked
  // Taken names, dropped just before the pass that is to try again; while there is one, nothing is created.
  std::vector<NameConflict> conflicts;
  // What the API server last refused; stays, with its count, until everything that a plan creates has been
  // created. When to try again is for the plan to say.
  std::vector<Rejection> rejections;
};

// Objects as a store hands them out: shared, not copied; none is null.
using Objects = std::vector<std::shared_ptr<const Json>>;

// A v1 Pod as the API server has it.
ObservedPod observe_pod(const Json& pod);

// A v1 Node.
ObservedNode observe_node(const Json& node);

// Whether the object's controller is this job (by UID).
bool is_controlled_by(const Json& object, const std::string& job_uid);

// Gives each pod what is known of its node.
void see_nodes(Observed& observed,
               const std::function<std::optional<ObservedNode>(const std::string& name)>& node_of);

// Note [A control plane that was cut off]: where not one node is Ready it is the control plane that is cut
// off, and no gang is torn down for that. When it is back nodes turn Ready one by one, and of the others
// nothing was known until the first of them did. So a node counts as not Ready from when the node that has
// been Ready for longest became so, at the earliest.
//
// Since when that one is; nothing where none is.
std::optional<TimePoint> longest_ready_since(const Objects& nodes);
// Corrects what see_nodes() has given the pods by that.
void count_unready_from(std::optional<TimePoint> longest_ready_since, Observed& observed);

// Everything from lists of v1 objects (services and config maps: their metadata is enough); those of other
// owners are skipped. Progress, conflicts and rejections are left empty.
Observed observe(const TrainingJob& job, const Objects& pods, const Objects& services,
                 const Objects& config_maps);

// The answer of rank 0's agent to GET /progress; nothing where it is of another attempt or has no step yet.
std::optional<Progress> parse_progress(const Json& answer, int64_t attempt);
// The ranks in any agent's answer; nothing where it is of another attempt.
std::optional<std::vector<RankPosition>> parse_positions(const Json& answer, int64_t attempt);

}  // namespace coxswain
