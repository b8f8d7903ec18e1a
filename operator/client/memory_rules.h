// What MemoryApi knows of each kind: the checks and defaults that an API server runs before it stores an
// object.
#pragma once

#include <optional>
#include <string>

#include "operator/client/api_client.h"

namespace coxswain::memory_rules {

// Makes `object` what a server would store for a POST of it (status reset, defaults, generation 1).
std::optional<ApiError> prepare_create(const Resource& resource, Json& object);

// Makes `next` what a server would store for a PUT of it over `current`: status and fields of the server's
// own kept, generation raised when anything but metadata and status changed.
std::optional<ApiError> prepare_update(const Resource& resource, const Json& current, Json& next);

// The same for a PUT of its status subresource: only the status is taken.
std::optional<ApiError> prepare_status(const Resource& resource, const Json& current, Json& next);

// Seconds that a DELETE leaves the object before it is gone. 0 for all but pods that run on a node.
int grace_seconds(const Resource& resource, const Json& object, std::optional<int> asked);

}  // namespace coxswain::memory_rules
