#include "operator/controller/child_writer.h"

#include <algorithm>
#include <atomic>
#include <functional>

#include "contract/contract.h"
#include "operator/client/metadata.h"

namespace coxswain {

namespace {

const Resource& resource_of(const std::string& kind) {
  if (kind == "Service") return resources::kServices;
  if (kind == "ConfigMap") return resources::kConfigMaps;
  return resources::kPods;
}

std::string attempt_label(const Json& object) {
  const Json labels = object.value("/metadata/labels"_json_pointer, Json::object());
  return labels.value(contract::kLabelAttempt, "");
}

// By its UID it isn't this job's, by name it is: the job that had the name before is gone, and garbage
// collection has yet to get to its child.
bool is_of_predecessor(const Json& object, const TrainingJob& job) {
  const Json& owner = metadata::controller(object);
  return owner.is_object() && owner.value("apiVersion", "") == contract::kApiVersion &&
         owner.value("kind", "") == contract::kKind && owner.value("name", "") == job.metadata.name;
}

ActionResult taken_name(ApiClient& api, const TrainingJob& job, const CreateChild& create) {
  const Resource& resource = resource_of(create.kind);
  auto existing = api.get(resource, job.metadata.namespace_name, create.name);
  if (!existing && existing.error().not_found()) return ActionWaits{};
  if (!existing) return ActionUnanswered{existing.error()};
  if (!is_controlled_by(*existing, job.metadata.uid)) {
    return ActionConflicts{{create.kind, create.name, is_of_predecessor(*existing, job)}};
  }
  const bool terminating = existing->contains("/metadata/deletionTimestamp"_json_pointer);
  if (terminating || attempt_label(*existing) != attempt_label(create.object)) return ActionWaits{};
  return ActionDone{std::move(*existing), resource};
}

ActionResult run(ApiClient& api, const TrainingJob& job, const CreateChild& create) {
  const Resource& resource = resource_of(create.kind);
  // Nothing has happened to it yet: its metadata is all there is to know.
  auto created = api.create(resource, job.metadata.namespace_name, create.object, {.metadata_only = true});
  if (created) return ActionDone{std::move(*created), resource};
  const ApiError& error = created.error();
  if (error.already_exists()) return taken_name(api, job, create);
  if (error.code == 0 || error.code == 409) return ActionUnanswered{error};
  std::optional<Duration> retry_after;
  if (error.retry_after) retry_after = *error.retry_after;
  Rejection rejection{create.kind, create.name, error.message, error.permanent(), error.code};
  rejection.retry_after = retry_after;
  return ActionRejected{std::move(rejection)};
}

// What a DELETE with the UID as its precondition says of the child.
ActionResult removed(const ApiResult<Json>& answer, const Resource& resource, const std::string& name,
                     const std::string& uid) {
  if (answer) {
    // From a grace of 0 seconds on it is gone though the answer shows it as being deleted.
    const Json& object = *answer;
    const bool stays = metadata::uid(object) == uid && metadata::being_deleted(object) &&
                       (metadata::has_finalizers(object) ||
                        object.value("/metadata/deletionGracePeriodSeconds"_json_pointer, 0) != 0);
    if (stays) return ActionDone{object, resource};
    return ActionGone{resource, name, uid};
  }
  // 409: the name belongs to another object by now, so the one that was meant is gone.
  if (answer.error().not_found() || answer.error().code == 409) return ActionGone{resource, name, uid};
  return ActionUnanswered{answer.error()};
}

ActionResult run(ApiClient& api, const TrainingJob& job, const DeletePod& pod) {
  DeleteOptions options;
  options.uid = pod.uid;
  if (pod.grace_seconds) options.grace_period_seconds = static_cast<int>(*pod.grace_seconds);
  const auto answer = api.remove(resources::kPods, job.metadata.namespace_name, pod.name, options);
  return removed(answer, resources::kPods, pod.name, pod.uid);
}

ActionResult run(ApiClient& api, const TrainingJob& job, const DeleteChild& child) {
  const Resource& resource = resource_of(child.kind);
  auto existing = api.get(resource, job.metadata.namespace_name, child.name);
  if (!existing && existing.error().not_found()) return ActionDone{Json(), resource};
  if (!existing) return ActionUnanswered{existing.error()};
  if (!is_controlled_by(*existing, job.metadata.uid)) return ActionDone{Json(), resource};
  DeleteOptions options;
  options.uid = metadata::uid(*existing);
  const auto answer = api.remove(resource, job.metadata.namespace_name, child.name, options);
  return removed(answer, resource, child.name, *options.uid);
}

ActionResult run(ApiClient& api, const TrainingJob& job, const DeleteJob& removal) {
  const Resource& resource = resources::kTrainingJobs;
  DeleteOptions options;
  options.uid = removal.uid;
  const auto answer = api.remove(resource, job.metadata.namespace_name, job.metadata.name, options);
  return removed(answer, resource, job.metadata.name, removal.uid);
}

}  // namespace

bool succeeded(const ActionResult& result) {
  return std::holds_alternative<ActionDone>(result) || std::holds_alternative<ActionGone>(result) ||
         std::holds_alternative<ActionWaits>(result);
}

ActionResult carry_out(ApiClient& api, const TrainingJob& job, const Action& action) {
  return std::visit([&](const auto& one) { return run(api, job, one); }, action);
}

size_t alike(std::span<const Action> actions) {
  const auto pod_creation = [](const Action& action) {
    const auto* create = std::get_if<CreateChild>(&action);
    return create != nullptr && create->kind == "Pod";
  };
  const auto pod_deletion = [](const Action& action) { return std::holds_alternative<DeletePod>(action); };
  const auto leading = [&](const auto& is) {
    return static_cast<size_t>(std::ranges::find_if_not(actions, is) - actions.begin());
  };
  return std::max({leading(pod_creation), leading(pod_deletion), size_t{1}});
}

std::vector<ActionResult> carry_out_together(ApiClient& api, const TrainingJob& job,
                                             std::span<const Action> actions, ParallelRunner& runner) {
  std::vector<ActionResult> results(actions.size());
  std::atomic<bool> failed = false;
  runner.run(actions.size(), [&](size_t i) {
    if (failed) return;
    try {
      results[i] = carry_out(api, job, actions[i]);
    } catch (const std::exception& error) {
      results[i] = ActionUnanswered{{0, "", error.what(), std::nullopt}};
    }
    if (!succeeded(results[i])) failed = true;
  });
  return results;
}

}  // namespace coxswain
