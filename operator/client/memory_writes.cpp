// The verbs of MemoryApi that write, and garbage collection.
#include <algorithm>
#include <random>

#include "operator/api/parse.h"
#include "operator/client/memory_api.h"
#include "operator/client/memory_errors.h"
#include "operator/client/memory_rules.h"
#include "operator/client/metadata.h"

namespace coxswain {

namespace {

std::string random_uid() {
  static thread_local std::mt19937_64 engine{std::random_device{}()};
  char buffer[37];
  const uint64_t a = engine();
  const uint64_t b = engine();
  std::snprintf(buffer, sizeof buffer, "%08x-%04x-4%03x-%04x-%012llx", static_cast<unsigned>(a >> 32),
                static_cast<unsigned>(a >> 16 & 0xffff), static_cast<unsigned>(a & 0xfff),
                static_cast<unsigned>(0x8000 | (b >> 48 & 0x3fff)),
                static_cast<unsigned long long>(b & 0xffffffffffffULL));
  return buffer;
}

}  // namespace

ApiResult<Json> MemoryApi::create(const Resource& resource, const std::string& ns, const Json& object,
                                  const WriteOptions& options) {
  Json next = object;
  if (!metadata::resource_version(next).empty()) {
    return api_error(500, "InternalError",
                     "Internal error occurred: resourceVersion should not be set on objects to be created");
  }
  if (const std::string own = metadata::namespace_name(next); !own.empty() && own != ns) {
    return api_error(400, "BadRequest",
                     "the namespace of the provided object does not match the namespace sent on the request");
  }
  if (!ns.empty()) next["metadata"]["namespace"] = ns;
  if (auto error = memory_rules::prepare_create(resource, next)) return tl::unexpected(std::move(*error));
  std::lock_guard lock(mutex_);
  if (find(resource, ns, metadata::name(next)) != nullptr) {
    return api_error(409, "AlreadyExists",
                     memory_errors::quoted(resource, metadata::name(next)) + " already exists");
  }
  next["metadata"]["uid"] = random_uid();
  next["metadata"]["creationTimestamp"] = format_time(clock_());
  next["metadata"].erase("deletionTimestamp");
  next["metadata"].erase("deletionGracePeriodSeconds");
  if (options.dry_run) return next;
  Json stored = store(resource, std::move(next));
  if (owned_by_nobody(stored)) erase(resource, {ns, metadata::name(stored)});
  return stored;
}

ApiResult<Json> MemoryApi::replace(const Resource& resource, const Json& current, Json next,
                                   const WriteOptions& options) {
  if (options.dry_run || next == current)
    return next;  // a write that changes nothing makes no version and no event
  Json stored = store(resource, std::move(next));
  if (metadata::being_deleted(stored) && !metadata::has_finalizers(stored) &&
      stored.value("/metadata/deletionGracePeriodSeconds"_json_pointer, 0) == 0) {
    erase(resource, {metadata::namespace_name(stored), metadata::name(stored)});
  }
  return stored;
}

ApiResult<Json> MemoryApi::checked_update(const Resource& resource, const std::string& ns, const Json& object,
                                          const WriteOptions& options, bool status_only) {
  const Json* current = find(resource, ns, metadata::name(object));
  if (current == nullptr) return memory_errors::not_found(resource, metadata::name(object));
  if (!metadata::uid(object).empty() && metadata::uid(object) != metadata::uid(*current)) {
    return memory_errors::conflict(resource, metadata::name(object),
                                   "Precondition failed: UID in precondition: " + metadata::uid(object) +
                                       ", UID in object meta: " + metadata::uid(*current));
  }
  if (!metadata::resource_version(object).empty() &&
      metadata::resource_version(object) != metadata::resource_version(*current)) {
    return memory_errors::conflict(resource, metadata::name(object), memory_errors::kModified);
  }
  if (metadata::resource_version(object).empty() && !resource.group.empty()) {
    return api_error(
        422, "Invalid",
        memory_errors::quoted(resource, metadata::name(object)) +
            " is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update");
  }
  Json next = object;
  auto error = status_only ? memory_rules::prepare_status(resource, *current, next)
                           : memory_rules::prepare_update(resource, *current, next);
  if (error) return tl::unexpected(std::move(*error));
  return replace(resource, Json(*current), std::move(next), options);
}

ApiResult<Json> MemoryApi::update(const Resource& resource, const std::string& ns, const Json& object,
                                  const WriteOptions& options) {
  std::lock_guard lock(mutex_);
  return checked_update(resource, ns, object, options, false);
}

ApiResult<Json> MemoryApi::update_status(const Resource& resource, const std::string& ns, const Json& object,
                                         const WriteOptions& options) {
  std::lock_guard lock(mutex_);
  return checked_update(resource, ns, object, options, true);
}

ApiResult<Json> MemoryApi::merge_patch(const Resource& resource, const std::string& ns,
                                       const std::string& name, const Json& patch,
                                       const WriteOptions& options) {
  std::lock_guard lock(mutex_);
  const Json* current = find(resource, ns, name);
  if (current == nullptr) return memory_errors::not_found(resource, name);
  const std::string wanted = metadata::resource_version(patch);
  if (!wanted.empty() && wanted != metadata::resource_version(*current))
    return memory_errors::conflict(resource, name, memory_errors::kModified);
  Json next = *current;
  next.merge_patch(patch);
  return checked_update(resource, ns, next, options, false);
}

ApiResult<Json> MemoryApi::remove(const Resource& resource, const std::string& ns, const std::string& name,
                                  const DeleteOptions& options) {
  std::lock_guard lock(mutex_);
  const Json* current = find(resource, ns, name);
  if (current == nullptr) return memory_errors::not_found(resource, name);
  if (options.uid && *options.uid != metadata::uid(*current)) {
    return memory_errors::conflict(resource, name,
                                   "Precondition failed: UID in precondition: " + *options.uid +
                                       ", UID in object meta: " + metadata::uid(*current));
  }
  if (options.resource_version && *options.resource_version != metadata::resource_version(*current)) {
    return memory_errors::conflict(
        resource, name,
        "Precondition failed: ResourceVersion in precondition: " + *options.resource_version +
            ", ResourceVersion in object meta: " + metadata::resource_version(*current));
  }
  Json answer = *current;
  if (options.dry_run) return answer;
  start_deletion(resource, answer,
                 memory_rules::grace_seconds(resource, answer, options.grace_period_seconds));
  if (const Json* left = find(resource, ns, name)) answer = *left;
  return answer;
}

void MemoryApi::start_deletion(const Resource& resource, const Json& object, int grace_seconds) {
  if (grace_seconds == 0 && !metadata::has_finalizers(object)) {
    erase(resource, {metadata::namespace_name(object), metadata::name(object)});
    return;
  }
  // A second DELETE can only shorten the time that the first one left.
  const auto grace_path = "/metadata/deletionGracePeriodSeconds"_json_pointer;
  if (metadata::being_deleted(object) && object.value(grace_path, 0) <= grace_seconds) return;
  Json next = object;
  next["metadata"]["deletionTimestamp"] = format_time(clock_() + std::chrono::seconds(grace_seconds));
  next["metadata"]["deletionGracePeriodSeconds"] = grace_seconds;
  store(resource, std::move(next));
}

bool MemoryApi::uid_exists(const std::string& uid) {
  return std::ranges::any_of(kinds_, [&](const auto& entry) {
    return std::ranges::any_of(entry.second.second,
                               [&](const auto& item) { return metadata::uid(item.second) == uid; });
  });
}

bool MemoryApi::owned_by_nobody(const Json& object) {
  const auto path = "/metadata/ownerReferences"_json_pointer;
  if (!object.contains(path) || object.at(path).empty()) return false;
  return std::ranges::none_of(object.at(path),
                              [&](const Json& owner) { return uid_exists(owner.value("uid", "")); });
}

void MemoryApi::collect_garbage(const std::string& owner_uid) {
  std::vector<std::pair<Resource, Json>> orphans;
  for (const auto& [_, entry] : kinds_) {
    for (const auto& [key, object] : entry.second) {
      const Json owners = object.value("/metadata/ownerReferences"_json_pointer, Json::array());
      const bool owned =
          std::ranges::any_of(owners, [&](const Json& o) { return o.value("uid", "") == owner_uid; });
      if (owned && owned_by_nobody(object)) orphans.emplace_back(entry.first, object);
    }
  }
  for (const auto& [resource, object] : orphans) {
    if (find(resource, metadata::namespace_name(object), metadata::name(object)) == nullptr) continue;
    start_deletion(resource, object, memory_rules::grace_seconds(resource, object, std::nullopt));
  }
}

}  // namespace coxswain
