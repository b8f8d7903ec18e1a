#include "operator/controller/child_writer.h"

#include <spdlog/spdlog.h>

#include <functional>

#include "contract/contract.h"
#include "operator/api/parse.h"

namespace coxswain {

namespace {

constexpr char kComponent[] = "coxswain-operator";

const Resource& resource_of(const std::string& kind) {
  if (kind == "Service") return resources::kServices;
  if (kind == "ConfigMap") return resources::kConfigMaps;
  return resources::kPods;
}

std::string attempt_label(const Json& object) {
  const Json labels = object.value("/metadata/labels"_json_pointer, Json::object());
  return labels.value(contract::kLabelAttempt, "");
}

ActionResult taken_name(ApiClient& api, const TrainingJob& job, const CreateChild& create) {
  const Resource& resource = resource_of(create.kind);
  auto existing = api.get(resource, job.metadata.namespace_name, create.name);
  if (!existing && existing.error().not_found()) return ActionWaits{};
  if (!existing) return ActionUnanswered{existing.error()};
  if (!is_controlled_by(*existing, job.metadata.uid)) return ActionConflicts{{create.kind, create.name}};
  const bool terminating = existing->contains("/metadata/deletionTimestamp"_json_pointer);
  if (terminating || attempt_label(*existing) != attempt_label(create.object)) return ActionWaits{};
  return ActionDone{std::move(*existing), resource};
}

ActionResult run(ApiClient& api, const TrainingJob& job, const CreateChild& create) {
  const Resource& resource = resource_of(create.kind);
  auto created = api.create(resource, job.metadata.namespace_name, create.object, {});
  if (created) return ActionDone{std::move(*created), resource};
  const ApiError& error = created.error();
  if (error.already_exists()) return taken_name(api, job, create);
  if (error.code == 0 || error.code == 409) return ActionUnanswered{error};
  std::optional<Duration> retry_after;
  if (error.retry_after) retry_after = *error.retry_after;
  return ActionRejected{{create.kind, create.name, error.message, error.permanent()}, retry_after};
}

ActionResult removed(const ApiResult<Json>& answer, const Resource& resource) {
  // 409: the name belongs to another object by now, so the one that was meant is gone.
  if (answer || answer.error().not_found() || answer.error().code == 409) return ActionDone{Json(), resource};
  return ActionUnanswered{answer.error()};
}

ActionResult run(ApiClient& api, const TrainingJob& job, const DeletePod& pod) {
  DeleteOptions options{pod.uid, std::nullopt, std::nullopt, false};
  if (pod.grace_seconds) options.grace_period_seconds = static_cast<int>(*pod.grace_seconds);
  return removed(api.remove(resources::kPods, job.metadata.namespace_name, pod.name, options),
                 resources::kPods);
}

ActionResult run(ApiClient& api, const TrainingJob& job, const DeleteChild& child) {
  const Resource& resource = resource_of(child.kind);
  auto existing = api.get(resource, job.metadata.namespace_name, child.name);
  if (!existing) return removed(existing, resource);
  if (!is_controlled_by(*existing, job.metadata.uid)) return ActionDone{Json(), resource};
  const DeleteOptions options{existing->at("metadata").value("uid", ""), std::nullopt, std::nullopt, false};
  return removed(api.remove(resource, job.metadata.namespace_name, child.name, options), resource);
}

ActionResult run(ApiClient& api, const TrainingJob& job, const DeleteJob& removal) {
  const DeleteOptions options{removal.uid, std::nullopt, std::nullopt, false};
  return removed(
      api.remove(resources::kTrainingJobs, job.metadata.namespace_name, job.metadata.name, options),
      resources::kTrainingJobs);
}

Json event_object(const TrainingJob& job, const Event& event, const std::string& name,
                  const std::string& now) {
  const ObjectMeta& meta = job.metadata;
  return {{"metadata", {{"name", name}, {"namespace", meta.namespace_name}}},
          {"involvedObject",
           {{"apiVersion", contract::kApiVersion},
            {"kind", contract::kKind},
            {"namespace", meta.namespace_name},
            {"name", meta.name},
            {"uid", meta.uid}}},
          {"type", event.type == EventType::kWarning ? "Warning" : "Normal"},
          {"reason", event.reason},
          {"message", event.message},
          {"source", {{"component", kComponent}}},
          {"firstTimestamp", now},
          {"lastTimestamp", now},
          {"count", 1}};
}

}  // namespace

ActionResult carry_out(ApiClient& api, const TrainingJob& job, const Action& action) {
  return std::visit([&](const auto& one) { return run(api, job, one); }, action);
}

void publish(ApiClient& api, const TrainingJob& job, const Event& event, TimePoint now) {
  const std::string ns = job.metadata.namespace_name;
  const size_t hash = std::hash<std::string>{}(job.metadata.uid + event.reason + event.message);
  const std::string name = fmt::format("{}.{:016x}", job.metadata.name, hash);
  const std::string time = format_time(now);
  auto created = api.create(resources::kEvents, ns, event_object(job, event, name, time), {});
  if (created) return;
  if (created.error().already_exists()) {
    if (auto before = api.get(resources::kEvents, ns, name)) {
      const Json again = {{"count", before->value("count", 1) + 1}, {"lastTimestamp", time}};
      if (api.merge_patch(resources::kEvents, ns, name, again, {})) return;
    }
  }
  spdlog::warn("{}/{}: event {} could not be written: {}", ns, job.metadata.name, event.reason,
               created.error().message);
}

}  // namespace coxswain
