#include "operator/api/parse.h"

#include "operator/api/json_input.h"
#include "operator/api/schema.h"

namespace coxswain {
namespace {

// The member, or a null that lives for ever.
const Json& member(const Json& object, const char* key) {
  static const Json null;
  if (!object.is_object()) return null;
  auto found = object.find(key);
  return found == object.end() ? null : *found;
}

void read(const Json& object, const char* key, std::string& out) {
  if (const Json& value = member(object, key); value.is_string()) out = value.get<std::string>();
}

void read(const Json& object, const char* key, bool& out) {
  if (const Json& value = member(object, key); value.is_boolean()) out = value.get<bool>();
}

void read(const Json& object, const char* key, int64_t& out) {
  if (const auto number = whole_number(member(object, key))) out = *number;
}

void read(const Json& object, const char* key, std::optional<int64_t>& out) {
  if (const auto number = whole_number(member(object, key))) out = number;
}

void read(const Json& object, const char* key, std::optional<TimePoint>& out) {
  if (const Json& value = member(object, key); value.is_string()) out = parse_time(value.get<std::string>());
}

void read(const Json& object, const char* key, std::map<std::string, std::string>& out) {
  if (!member(object, key).is_object()) return;
  for (const auto& [name, value] : member(object, key).items()) {
    if (value.is_string()) out[name] = value.get<std::string>();
  }
}

void read_kind(const Json& object, const char* key, Json::value_t type, Json& out) {
  if (member(object, key).type() == type) out = member(object, key);
}

ObjectMeta parse_metadata(const Json& json) {
  ObjectMeta meta;
  read(json, "name", meta.name);
  read(json, "namespace", meta.namespace_name);
  read(json, "uid", meta.uid);
  read(json, "resourceVersion", meta.resource_version);
  read(json, "generation", meta.generation);
  read(json, "creationTimestamp", meta.creation_timestamp);
  read(json, "deletionTimestamp", meta.deletion_timestamp);
  read(json, "labels", meta.labels);
  read(json, "annotations", meta.annotations);
  return meta;
}

RunPolicy parse_run_policy(const Json& json) {
  RunPolicy policy;
  read(json, "backoffLimit", policy.backoff_limit);
  read(json, "activeDeadlineSeconds", policy.active_deadline_seconds);
  read(json, "startupDeadlineSeconds", policy.startup_deadline_seconds);
  read(json, "ttlSecondsAfterFinished", policy.ttl_seconds_after_finished);
  read(json, "terminationGracePeriodSeconds", policy.termination_grace_period_seconds);
  read(json, "hangTimeoutSeconds", policy.hang_timeout_seconds);
  read(json, "nodeLostTimeoutSeconds", policy.node_lost_timeout_seconds);
  std::string clean;
  read(json, "cleanPodPolicy", clean);
  for (CleanPodPolicy known : {CleanPodPolicy::kRunning, CleanPodPolicy::kAll, CleanPodPolicy::kNone}) {
    if (clean == to_string(known)) policy.clean_pod_policy = known;
  }
  return policy;
}

TrainingJobSpec parse_spec(const Json& json) {
  TrainingJobSpec spec;
  read_kind(json, "config", Json::value_t::object, spec.config);
  read_kind(json, "template", Json::value_t::object, spec.pod_template);
  read(json, "nodes", spec.nodes);
  read(json, "processesPerNode", spec.processes_per_node);
  read(json, "image", spec.image);
  read_kind(json, "resources", Json::value_t::object, spec.resources);
  read_kind(json, "env", Json::value_t::array, spec.env);
  read_kind(json, "envFrom", Json::value_t::array, spec.env_from);
  read_kind(json, "volumes", Json::value_t::array, spec.volumes);
  read_kind(json, "volumeMounts", Json::value_t::array, spec.volume_mounts);
  const Json& output = member(json, "output");
  if (member(output, "claimName").is_string())
    spec.output.claim_name = output["claimName"].get<std::string>();
  read(output, "subPath", spec.output.sub_path);
  read(member(json, "recovery"), "intervalSeconds", spec.recovery.interval_seconds);
  read(json, "suspend", spec.suspend);
  spec.run_policy = parse_run_policy(member(json, "runPolicy"));
  return spec;
}

Condition parse_condition(const Json& json) {
  Condition condition;
  read(json, "type", condition.type);
  condition.status = member(json, "status") == "True";
  read(json, "reason", condition.reason);
  read(json, "message", condition.message);
  read(json, "observedGeneration", condition.observed_generation);
  std::optional<TimePoint> time;
  read(json, "lastTransitionTime", time);
  condition.last_transition_time = time.value_or(TimePoint());
  return condition;
}

LastFailure parse_last_failure(const Json& json) {
  LastFailure failure;
  std::optional<TimePoint> time;
  read(json, "time", time);
  failure.time = time.value_or(TimePoint());
  read(json, "attempt", failure.attempt);
  read(json, "pod", failure.pod);
  read(json, "nodeRank", failure.node_rank);
  read(json, "cause", failure.cause);
  read(json, "exitCode", failure.exit_code);
  read(json, "message", failure.message);
  return failure;
}

TrainingStatus parse_training(const Json& json) {
  TrainingStatus training;
  read(json, "step", training.step);
  read(json, "totalSteps", training.total_steps);
  read(json, "epoch", training.epoch);
  read(json, "loss", training.loss);
  read(json, "tokensPerSecond", training.tokens_per_second);
  read(json, "estimatedCompletionTime", training.estimated_completion_time);
  read(json, "lastProgressTime", training.last_progress_time);
  read(json, "lastCheckpointStep", training.last_checkpoint_step);
  return training;
}

}  // namespace

TrainingJobStatus parse_status(const Json& json) {
  TrainingJobStatus status;
  read(json, "observedGeneration", status.observed_generation);
  if (member(json, "conditions").is_array()) {
    for (const Json& condition : json["conditions"]) status.conditions.push_back(parse_condition(condition));
  }
  std::string phase;
  read(json, "phase", phase);
  for (int i = 0; i <= static_cast<int>(Phase::kFailed); ++i) {
    if (phase == to_string(static_cast<Phase>(i))) status.phase = static_cast<Phase>(i);
  }
  read(json, "attempt", status.attempt);
  read(json, "runtimeImage", status.runtime_image);
  const Json& nodes = member(json, "nodes");
  read(nodes, "desired", status.nodes.desired);
  read(nodes, "active", status.nodes.active);
  read(nodes, "ready", status.nodes.ready);
  read(nodes, "succeeded", status.nodes.succeeded);
  read(nodes, "failed", status.nodes.failed);
  read(member(json, "restarts"), "counted", status.restarts.counted);
  read(member(json, "restarts"), "disruptions", status.restarts.disruptions);
  read(member(json, "restarts"), "hangs", status.restarts.hangs);
  read(json, "startTime", status.start_time);
  read(json, "startupTime", status.startup_time);
  read(json, "completionTime", status.completion_time);
  if (member(json, "lastFailure").is_object()) status.last_failure = parse_last_failure(json["lastFailure"]);
  if (member(json, "training").is_object()) status.training = parse_training(json["training"]);
  return status;
}

TrainingJob parse_training_job(const Json& object) {
  const Json full = object.is_object() ? with_defaults(training_job_schema(), object) : Json::object();
  return {parse_metadata(member(full, "metadata")), parse_spec(member(full, "spec")),
          parse_status(member(full, "status"))};
}

}  // namespace coxswain
