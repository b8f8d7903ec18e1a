#include "operator/client/memory_rules.h"

#include <regex>

#include "operator/client/event_rules.h"
#include "operator/client/training_job_rules.h"

namespace coxswain::memory_rules {

namespace {

std::string qualified(const Resource& resource) {
  // Events are stored as the core group's, whichever they were written as.
  const bool core = resource.group.empty() || resource == resources::kEvents;
  return core ? resource.kind : resource.kind + "." + resource.group;
}

ApiError invalid(const Resource& resource, const Json& object, const std::string& why) {
  const std::string name = object["metadata"].value("name", "");
  return {422, "Invalid", qualified(resource) + " \"" + name + "\" is invalid: " + why, std::nullopt};
}

std::optional<ApiError> check_name(const Resource& resource, const Json& object) {
  static const std::regex subdomain(R"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)");
  static const std::regex dns1035("[a-z]([-a-z0-9]*[a-z0-9])?");
  const std::string name = object["metadata"].value("name", "");
  if (name.empty()) return invalid(resource, object, "metadata.name: Required value: name is required");
  const bool service = resource == resources::kServices;
  const bool good = service ? name.size() <= 63 && std::regex_match(name, dns1035)
                            : name.size() <= 253 && std::regex_match(name, subdomain);
  if (good) return std::nullopt;
  return invalid(
      resource, object,
      "metadata.name: Invalid value: \"" + name + "\": " +
          (service ? "a DNS-1035 label must start with a letter and consist of at most 63 lower case "
                     "alphanumeric characters or '-'"
                   : "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
                     "'-' or '.', and must start and end with an alphanumeric character"));
}

bool has_status_subresource(const Resource& resource) {
  return resource == resources::kPods || resource == resources::kServices ||
         resource == resources::kTrainingJobs || resource == resources::kNodes;
}

bool has_generation(const Resource& resource) {
  return resource == resources::kTrainingJobs;
}

// The server's own: a writer's values for them are ignored.
void keep_server_fields(const Json& current, Json& next) {
  for (const char* field : {"uid", "creationTimestamp", "generation", "deletionTimestamp",
                            "deletionGracePeriodSeconds", "resourceVersion", "namespace"}) {
    if (current["metadata"].contains(field)) {
      next["metadata"][field] = current["metadata"][field];
    } else {
      next["metadata"].erase(field);
    }
  }
}

bool same_but_for_metadata_and_status(Json a, Json b) {
  for (Json* object : {&a, &b}) {
    object->erase("metadata");
    object->erase("status");
  }
  return a == b;
}

std::optional<ApiError> check_pod(const Json& pod) {
  const Json containers = pod.value("/spec/containers"_json_pointer, Json::array());
  if (containers.empty()) return invalid(resources::kPods, pod, "spec.containers: Required value");
  for (size_t i = 0; i < containers.size(); ++i) {
    if (!containers[i].value("image", "").empty()) continue;
    return invalid(resources::kPods, pod, "spec.containers[" + std::to_string(i) + "].image: Required value");
  }
  return std::nullopt;
}

std::optional<ApiError> check_config_map_update(const Json& current, const Json& next) {
  if (!current.value("immutable", false)) return std::nullopt;
  const char why[] = ": Forbidden: field is immutable when `immutable` is set";
  for (const char* field : {"immutable", "data", "binaryData"}) {
    if (current.value(field, Json()) != next.value(field, Json())) {
      return invalid(resources::kConfigMaps, next, std::string(field) + why);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<ApiError> prepare_create(const Resource& resource, Json& object) {
  if (auto error = check_name(resource, object)) return error;
  object["kind"] = resource.kind;
  object["apiVersion"] = resource.api_version();
  // A node may bring its status along.
  if (has_status_subresource(resource) && resource != resources::kNodes) object.erase("status");
  object["metadata"].erase("generation");
  if (has_generation(resource)) object["metadata"]["generation"] = 1;
  if (resource == resources::kPods) {
    if (auto error = check_pod(object)) return error;
    Json& spec = object["spec"];
    if (!spec.contains("restartPolicy")) spec["restartPolicy"] = "Always";
    if (!spec.contains("terminationGracePeriodSeconds")) spec["terminationGracePeriodSeconds"] = 30;
    object["status"] = {{"phase", "Pending"}};
  }
  if (resource == resources::kTrainingJobs) return training_job_rules::check_create(object);
  if (resource == resources::kEvents) {
    if (const auto why = event_rules::check_create(object)) return invalid(resource, object, *why);
  }
  return std::nullopt;
}

std::optional<ApiError> prepare_update(const Resource& resource, const Json& current, Json& next) {
  next["kind"] = resource.kind;
  next["apiVersion"] = resource.api_version();
  keep_server_fields(current, next);
  if (has_status_subresource(resource)) {
    next.erase("status");
    if (current.contains("status")) next["status"] = current["status"];
  }
  if (resource == resources::kTrainingJobs) {
    if (auto error = training_job_rules::check_update(current, next)) return error;
  }
  if (resource == resources::kConfigMaps) {
    if (auto error = check_config_map_update(current, next)) return error;
  }
  if (resource == resources::kEvents) {
    if (const auto why = event_rules::check_update(current, next)) return invalid(resource, next, *why);
  }
  if (resource == resources::kPods && current.value("spec", Json()) != next.value("spec", Json())) {
    return invalid(resource, next,
                   "spec: Forbidden: pod updates may not change fields other than `image` and few more");
  }
  if (has_generation(resource) && !same_but_for_metadata_and_status(current, next)) {
    next["metadata"]["generation"] = current["metadata"].value("generation", 0) + 1;
  }
  return std::nullopt;
}

std::optional<ApiError> prepare_status(const Resource& resource, const Json& current, Json& next) {
  if (!has_status_subresource(resource)) {
    return ApiError{404, "NotFound", "the server could not find the requested resource", std::nullopt};
  }
  Json status = next.value("status", Json());
  next = current;
  next.erase("status");
  if (!status.is_null()) next["status"] = std::move(status);
  return std::nullopt;
}

int grace_seconds(const Resource& resource, const Json& object, std::optional<int> asked) {
  if (resource != resources::kPods) return 0;
  // A pod that no node has yet, or whose containers have ended, has nothing to wait for.
  if (object.value("/spec/nodeName"_json_pointer, "").empty()) return 0;
  const std::string phase = object.value("/status/phase"_json_pointer, "");
  if (phase == "Succeeded" || phase == "Failed") return 0;
  return asked.value_or(object.value("/spec/terminationGracePeriodSeconds"_json_pointer, 30));
}

}  // namespace coxswain::memory_rules
