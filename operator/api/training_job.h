// The TrainingJob as plain structs: what a person asked for (spec, defaults applied in memory) and what the
// operator has learned (status). Nothing here does I/O; the JSON of the Kubernetes API is in parse.h, the
// checks in validate.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace coxswain {

using Json = nlohmann::json;
// Wall-clock time (UTC). What is written to the API keeps whole seconds, as metav1.Time does.
using TimePoint = std::chrono::sys_time<std::chrono::milliseconds>;
using Duration = std::chrono::milliseconds;

// The part of metav1.ObjectMeta that is read.
struct ObjectMeta {
  std::string name;
  std::string namespace_name;  // metadata.namespace
  std::string uid;
  std::string resource_version;
  int64_t generation = 0;
  std::optional<TimePoint> creation_timestamp;
  std::optional<TimePoint> deletion_timestamp;  // set: being deleted; nothing is created for it any more
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
};

// --- spec --------------------------------------------------------------------------------------------------
enum class CleanPodPolicy { kRunning, kAll, kNone };

struct Output {
  std::optional<std::string>
      claim_name;  // a PersistentVolumeClaim; absent: an emptyDir that dies with the pod
  std::string sub_path;
};

struct Recovery {
  int64_t interval_seconds = 600;  // between recovery checkpoints; 0: only the one that SIGTERM asks for
};

struct RunPolicy {
  int64_t backoff_limit = 3;                          // counted failures before the job is Failed
  std::optional<int64_t> active_deadline_seconds;     // from status.startTime; absent: none
  int64_t startup_deadline_seconds = 1800;            // for all pods of an attempt to run
  std::optional<int64_t> ttl_seconds_after_finished;  // absent: the job is kept
  CleanPodPolicy clean_pod_policy = CleanPodPolicy::kRunning;
  int64_t termination_grace_period_seconds = 120;  // for the checkpoint that SIGTERM asks for
  std::optional<int64_t> hang_timeout_seconds;     // without any rank moving; absent: hangs aren't looked for
  int64_t node_lost_timeout_seconds = 60;          // of a node that isn't Ready, before its pods are given up
};

struct TrainingJobSpec {
  Json config;        // object, or null where absent: bring your own framework
  Json pod_template;  // spec.template: PodTemplateSpec, or null
  int64_t nodes = 1;
  std::optional<int64_t> processes_per_node;  // absent: see processes_per_node() below
  std::string image;                          // empty: the operator's release of the runtime
  Json resources;                             // ResourceRequirements, or null
  Json env = Json::array();
  Json env_from = Json::array();
  Json volumes = Json::array();
  Json volume_mounts = Json::array();
  Output output;
  Recovery recovery;
  bool suspend = false;
  RunPolicy run_policy;

  bool has_config() const { return config.is_object(); }
};

// --- status ------------------------------------------------------------------------------------------------
// metav1.Condition.
struct Condition {
  std::string type;
  bool status = false;
  std::string reason;  // CamelCase
  std::string message;
  int64_t observed_generation = 0;
  TimePoint last_transition_time;  // of status, not of reason or message

  bool operator==(const Condition&) const = default;
};

// What a person reads first (a printer column); programs read the conditions.
enum class Phase {
  kPending,
  kStarting,
  kRunning,
  kRestarting,
  kSuspending,
  kSuspended,
  kStalled,
  kComplete,
  kFailed
};

struct NodesStatus {
  int64_t desired = 0;
  int64_t active = 0;  // pods of this attempt that have not ended
  int64_t ready = 0;   // of those, running and ready
  int64_t succeeded = 0;
  int64_t failed = 0;

  bool operator==(const NodesStatus&) const = default;
};

struct RestartsStatus {
  int64_t counted = 0;      // against runPolicy.backoffLimit
  int64_t disruptions = 0;  // evictions, preemptions, lost nodes and pods: never counted
  int64_t hangs = 0;        // of the counted ones, those that answered a hang

  bool operator==(const RestartsStatus&) const = default;
};

struct LastFailure {
  TimePoint time;  // when the operator settled on the cause
  int64_t attempt = 0;
  std::string pod;
  std::optional<int64_t> node_rank;
  std::string cause;  // one of the words of reconcile/failure_cause.h
  std::optional<int64_t> exit_code;
  std::string message;

  bool operator==(const LastFailure&) const = default;
};

// Numbers that can be NaN or infinite are strings.
struct TrainingStatus {
  int64_t step = 0;
  std::optional<int64_t> total_steps;
  std::string epoch;
  std::string loss;
  std::string tokens_per_second;
  std::optional<TimePoint> estimated_completion_time;
  std::optional<TimePoint> last_progress_time;
  std::optional<int64_t> last_checkpoint_step;

  bool operator==(const TrainingStatus&) const = default;
};

struct TrainingJobStatus {
  int64_t observed_generation = 0;
  std::vector<Condition> conditions;  // a type at most once
  Phase phase = Phase::kPending;
  int64_t attempt = 0;        // pods of an earlier attempt are to be deleted; this one's are the gang
  std::string runtime_image;  // the default image, resolved once; empty until needed
  NodesStatus nodes;
  RestartsStatus restarts;
  std::optional<TimePoint> start_time;  // of this run: cleared by a suspension, set anew by a resume
  // When the pods of the present start were first due: startupDeadlineSeconds counts from here, also over a
  // release of a part of the gang. Cleared by a restart and by a suspension.
  std::optional<TimePoint> startup_time;
  std::optional<TimePoint> completion_time;  // when it became Complete or Failed
  std::optional<LastFailure> last_failure;
  std::optional<TrainingStatus> training;

  bool operator==(const TrainingJobStatus&) const = default;
};

// Condition types.
inline constexpr char kConditionSuspended[] = "Suspended";
inline constexpr char kConditionRunning[] = "Running";
inline constexpr char kConditionRestarting[] = "Restarting";
inline constexpr char kConditionComplete[] = "Complete";        // terminal: never changes again
inline constexpr char kConditionFailed[] = "Failed";            // terminal: never changes again
inline constexpr char kConditionReady[] = "Ready";              // kstatus
inline constexpr char kConditionReconciling[] = "Reconciling";  // kstatus: only while starting or restarting
inline constexpr char kConditionStalled[] = "Stalled";  // kstatus: Failed, NameConflict, InvalidConfig, …

struct TrainingJob {
  ObjectMeta metadata;
  TrainingJobSpec spec;
  TrainingJobStatus status;
};

// The condition of that type, or nullptr. Points into `status`.
const Condition* find_condition(const TrainingJobStatus& status, const std::string& type);
// True when the condition is there and True.
bool has_condition(const TrainingJobStatus& status, const std::string& type);
// Complete or Failed.
bool is_finished(const TrainingJobStatus& status);

// Workers in each pod: spec.processesPerNode, else one for each GPU among the trainer's resources
// (spec.resources, else the template's), else 1. `nvidia.com/gpu`, `amd.com/gpu` and `nvidia.com/mig-*` are
// GPUs.
int64_t processes_per_node(const TrainingJobSpec& spec);

// The template's container `trainer` as it was written, or null.
Json template_trainer(const TrainingJobSpec& spec);

std::string to_string(Phase phase);
std::string to_string(CleanPodPolicy policy);

}  // namespace coxswain
