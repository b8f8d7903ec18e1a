// MemoryApi's refusals, in an API server's words.
#pragma once

#include <string>

#include "operator/client/api_client.h"

namespace coxswain::memory_errors {

inline constexpr char kModified[] =
    "the object has been modified; please apply your changes to the latest version and try again";

// pods "p", trainingjobs.training.coxswain.dev "j"
std::string quoted(const Resource& resource, const std::string& name);
tl::unexpected<ApiError> not_found(const Resource& resource, const std::string& name);
tl::unexpected<ApiError> conflict(const Resource& resource, const std::string& name, const std::string& why);
// As an ERROR event carries it.
Json status(const ApiError& error);
ApiError expired();

}  // namespace coxswain::memory_errors
