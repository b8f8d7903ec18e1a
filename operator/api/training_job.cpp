#include "operator/api/training_job.h"

#include <algorithm>

#include "contract/contract.h"
#include "operator/api/parse.h"

namespace coxswain {
namespace {

bool is_gpu(const std::string& resource) {
  return resource == "nvidia.com/gpu" || resource == "amd.com/gpu" ||
         resource.rfind("nvidia.com/mig-", 0) == 0;
}

int64_t gpus_in(const Json& resources) {
  for (const char* list : {"limits", "requests"}) {
    if (!resources.is_object() || !resources.contains(list) || !resources[list].is_object()) continue;
    double gpus = 0;
    for (const auto& [resource, amount] : resources[list].items()) {
      if (!is_gpu(resource)) continue;
      gpus += parse_quantity(amount.is_string() ? amount.get<std::string>() : amount.dump()).value_or(0);
    }
    if (gpus >= 1) return static_cast<int64_t>(std::min(gpus, 1024.0));
  }
  return 0;
}

}  // namespace

const Condition* find_condition(const TrainingJobStatus& status, const std::string& type) {
  auto found = std::find_if(status.conditions.begin(), status.conditions.end(),
                            [&](const Condition& condition) { return condition.type == type; });
  return found == status.conditions.end() ? nullptr : &*found;
}

bool has_condition(const TrainingJobStatus& status, const std::string& type) {
  const Condition* condition = find_condition(status, type);
  return condition != nullptr && condition->status;
}

bool is_finished(const TrainingJobStatus& status) {
  return has_condition(status, kConditionComplete) || has_condition(status, kConditionFailed);
}

Json template_trainer(const TrainingJobSpec& spec) {
  const auto containers = Json::json_pointer("/spec/containers");
  if (!spec.pod_template.is_object() || !spec.pod_template.contains(containers)) return nullptr;
  const Json& list = spec.pod_template[containers];
  if (!list.is_array()) return nullptr;
  for (const Json& container : list) {
    if (container.is_object() && container.value("name", Json()) == contract::kTrainerContainer)
      return container;
  }
  return nullptr;
}

int64_t processes_per_node(const TrainingJobSpec& spec) {
  if (spec.processes_per_node) return *spec.processes_per_node;
  Json resources = spec.resources;
  if (!resources.is_object()) {
    const Json trainer = template_trainer(spec);
    if (trainer.is_object()) resources = trainer.value("resources", Json());
  }
  return std::max<int64_t>(1, gpus_in(resources));
}

std::string to_string(Phase phase) {
  switch (phase) {
    case Phase::kPending:
      return "Pending";
    case Phase::kStarting:
      return "Starting";
    case Phase::kRunning:
      return "Running";
    case Phase::kRestarting:
      return "Restarting";
    case Phase::kSuspending:
      return "Suspending";
    case Phase::kSuspended:
      return "Suspended";
    case Phase::kStalled:
      return "Stalled";
    case Phase::kComplete:
      return "Complete";
    case Phase::kFailed:
      return "Failed";
  }
  return "Pending";
}

std::string to_string(CleanPodPolicy policy) {
  switch (policy) {
    case CleanPodPolicy::kRunning:
      return "Running";
    case CleanPodPolicy::kAll:
      return "All";
    case CleanPodPolicy::kNone:
      return "None";
  }
  return "Running";
}

}  // namespace coxswain
