// The CustomResourceDefinition's part of MemoryApi: schema and CEL rules, by their C++ twins.
#pragma once

#include <optional>

#include "operator/client/api_client.h"

namespace coxswain::training_job_rules {

std::optional<ApiError> check_create(const Json& object);
std::optional<ApiError> check_update(const Json& current, const Json& next);

}  // namespace coxswain::training_job_rules
