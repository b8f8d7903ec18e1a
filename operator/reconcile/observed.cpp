#include "operator/reconcile/observed.h"

#include <algorithm>

#include "contract/contract.h"
#include "operator/api/json_input.h"
#include "operator/api/parse.h"
#include "operator/reconcile/render.h"

namespace coxswain {
namespace {

const Json& at(const Json& object, const char* key) {
  static const Json null;
  if (!object.is_object()) return null;
  auto found = object.find(key);
  return found == object.end() ? null : *found;
}

std::string text(const Json& object, const char* key) {
  const Json& value = at(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}

std::optional<TimePoint> time(const Json& object, const char* key) {
  return parse_time(text(object, key));
}

int64_t integer(const Json& object, const char* key) {
  return whole_number(at(object, key)).value_or(0);
}

// A label that holds a number; -1 where it doesn't.
int64_t number_label(const Json& object, const char* label) {
  const std::string value = text(at(at(object, "metadata"), "labels"), label);
  const bool digits =
      !value.empty() && value.size() < 10 && value.find_first_not_of("0123456789") == std::string::npos;
  return digits ? std::stoll(value) : -1;
}

PodPhase pod_phase(const std::string& phase) {
  if (phase == "Pending" || phase.empty()) return PodPhase::kPending;
  if (phase == "Running") return PodPhase::kRunning;
  if (phase == "Succeeded") return PodPhase::kSucceeded;
  if (phase == "Failed") return PodPhase::kFailed;
  return PodPhase::kUnknown;
}

const Json& trainer_status(const Json& status) {
  static const Json null;
  for (const Json& container : at(status, "containerStatuses")) {
    if (text(container, "name") == contract::kTrainerContainer) return container;
  }
  return null;
}

std::optional<Termination> termination(const Json& container) {
  const Json& ended = at(at(container, "state"), "terminated");
  if (!ended.is_object()) return std::nullopt;
  return Termination{integer(ended, "exitCode"), integer(ended, "signal"), text(ended, "reason"),
                     text(ended, "message"), time(ended, "finishedAt")};
}

void read_conditions(const Json& status, ObservedPod& pod) {
  for (const Json& condition : at(status, "conditions")) {
    const std::string type = text(condition, "type");
    const std::string value = text(condition, "status");
    if (type == "Ready") pod.ready = value == "True";
    if (type == "DisruptionTarget" && value == "True") {
      pod.disruption = text(condition, "reason");
      if (pod.message.empty()) pod.message = text(condition, "message");
    }
    if (type == "PodScheduled" && value == "True") pod.bound = time(condition, "lastTransitionTime");
    if (type == "PodScheduled" && value == "False") {
      pod.waiting = Waiting{"", false, text(condition, "reason"), text(condition, "message")};
    }
    if (type == "PodReadyToStartContainers") pod.sandbox_missing = value == "False";
  }
}

void read_waiting(const Json& container, bool init, ObservedPod& pod) {
  const Json& waiting = at(at(container, "state"), "waiting");
  const std::string reason = text(waiting, "reason");
  if (reason.empty() || reason == "ContainerCreating" || reason == "PodInitializing") return;
  pod.waiting = Waiting{text(container, "name"), init, reason, text(waiting, "message")};
}

// Init containers and sidecars can hold a pod up just as well.
void read_containers(const Json& status, ObservedPod& pod) {
  for (const Json& container : at(status, "initContainerStatuses")) {
    read_waiting(container, true, pod);
    const std::string name = text(container, "name");
    const Json& ended = at(at(container, "state"), "terminated");
    // A sidecar is an init container that has started and stays.
    if (at(at(container, "state"), "running").is_object() && at(container, "started") != true) {
      pod.running_init = name;
    }
    if (integer(ended, "exitCode") != 0) {
      pod.failed_init = FailedInit{name, integer(ended, "exitCode"), text(ended, "message")};
    }
  }
  for (const Json& container : at(status, "containerStatuses")) read_waiting(container, false, pod);
}

const Json& rank_zero(const Json& answer) {
  static const Json null;
  for (const Json& worker : at(answer, "workers")) {
    if (at(worker, "rank") == 0) return worker;
  }
  return null;
}

std::optional<double> real(const Json& object, const char* key) {
  const Json& value = at(object, key);
  if (value.is_number()) return value.get<double>();
  return std::nullopt;
}

std::optional<int64_t> whole(const Json& object, const char* key) {
  return whole_number(at(object, key));
}

// Any program may answer on the agent's port: counts below zero are none, and their differences might not
// fit.
std::optional<int64_t> count(const Json& object, const char* key) {
  const auto number = whole(object, key);
  return number && *number >= 0 ? number : std::nullopt;
}

}  // namespace

bool is_controlled_by(const Json& object, const std::string& job_uid) {
  for (const Json& owner : at(at(object, "metadata"), "ownerReferences")) {
    if (at(owner, "controller") == true && text(owner, "uid") == job_uid) return true;
  }
  return false;
}

ObservedPod observe_pod(const Json& object) {
  const Json& metadata = at(object, "metadata");
  const Json& status = at(object, "status");
  ObservedPod pod;
  pod.name = text(metadata, "name");
  pod.uid = text(metadata, "uid");
  pod.attempt = number_label(object, contract::kLabelAttempt);
  pod.node_rank = number_label(object, contract::kLabelNodeRank);
  pod.phase = pod_phase(text(status, "phase"));
  pod.created = time(metadata, "creationTimestamp");
  pod.deletion_time = time(metadata, "deletionTimestamp");
  pod.deletion_grace_seconds = whole(metadata, "deletionGracePeriodSeconds");
  for (const Json& finalizer : at(metadata, "finalizers")) {
    if (finalizer.is_string()) pod.finalizers.push_back(finalizer.get<std::string>());
  }
  pod.node = text(at(object, "spec"), "nodeName");
  pod.reason = text(status, "reason");
  pod.message = text(status, "message");
  pod.spec_fingerprint = text(at(metadata, "annotations"), kAnnotationSpec);
  read_conditions(status, pod);
  read_containers(status, pod);
  pod.termination = termination(trainer_status(status));
  return pod;
}

ObservedNode observe_node(const Json& object) {
  ObservedNode node;
  for (const Json& condition : at(at(object, "status"), "conditions")) {
    if (text(condition, "type") != "Ready") continue;
    node = {text(condition, "status") == "True", time(condition, "lastTransitionTime"),
            text(condition, "reason"), text(condition, "message")};
  }
  return node;
}

void see_nodes(Observed& observed,
               const std::function<std::optional<ObservedNode>(const std::string& name)>& node_of) {
  for (ObservedPod& pod : observed.pods) {
    if (!pod.node.empty()) pod.node_seen = node_of(pod.node);
  }
}

std::optional<TimePoint> longest_ready_since(const Objects& nodes) {
  std::optional<TimePoint> first;
  for (const auto& object : nodes) {
    const ObservedNode node = observe_node(*object);
    if (!node.ready) continue;
    const TimePoint since = node.since.value_or(TimePoint::min());
    if (!first || since < *first) first = since;
  }
  return first;
}

void count_unready_from(std::optional<TimePoint> longest_ready_since, Observed& observed) {
  for (ObservedPod& pod : observed.pods) {
    if (!longest_ready_since) pod.node_seen.reset();
    if (!pod.node_seen || pod.node_seen->ready || !pod.node_seen->since) continue;
    pod.node_seen->since = std::max(*pod.node_seen->since, *longest_ready_since);
  }
}

Observed observe(const TrainingJob& job, const Objects& pods, const Objects& services,
                 const Objects& config_maps) {
  const std::string& uid = job.metadata.uid;
  Observed observed;
  for (const auto& pod : pods) {
    if (is_controlled_by(*pod, uid)) observed.pods.push_back(observe_pod(*pod));
  }
  observed.has_service = std::any_of(services.begin(), services.end(), [&](const auto& service) {
    return is_controlled_by(*service, uid) && text(at(*service, "metadata"), "name") == service_name(job);
  });
  for (const auto& config_map : config_maps) {
    const int64_t attempt = number_label(*config_map, contract::kLabelAttempt);
    if (attempt >= 0 && is_controlled_by(*config_map, uid)) observed.config_map_attempts.insert(attempt);
  }
  return observed;
}

std::optional<Progress> parse_progress(const Json& answer, int64_t attempt) {
  const Json& worker = rank_zero(answer);
  const auto step = count(worker, "step");
  if (whole(answer, "attempt") != attempt || !step) return std::nullopt;
  Progress progress;
  progress.step = *step;
  progress.total_steps = count(worker, "total_steps");
  progress.epoch = real(worker, "epoch");
  progress.loss = real(worker, "loss");
  // JSON has no NaN: a step without a number for its loss had none.
  if (!progress.loss && worker.contains("loss")) progress.loss = std::numeric_limits<double>::quiet_NaN();
  progress.tokens_per_second = real(worker, "tokens_per_second");
  progress.last_checkpoint_step = count(answer, "last_checkpoint_step");
  return progress;
}

std::optional<std::vector<RankPosition>> parse_positions(const Json& answer, int64_t attempt) {
  if (whole(answer, "attempt") != attempt) return std::nullopt;
  std::vector<RankPosition> ranks;
  for (const Json& worker : at(answer, "workers")) {
    if (const auto rank = whole(worker, "rank")) {
      ranks.push_back({*rank, text(worker, "phase"), count(worker, "step")});
    }
  }
  return ranks;
}

}  // namespace coxswain
