#include "operator/client/memory_errors.h"

namespace coxswain::memory_errors {

std::string quoted(const Resource& resource, const std::string& name) {
  return (resource.group.empty() ? resource.plural : resource.plural + "." + resource.group) + " \"" + name +
         "\"";
}

tl::unexpected<ApiError> not_found(const Resource& resource, const std::string& name) {
  return api_error(404, "NotFound", quoted(resource, name) + " not found");
}

tl::unexpected<ApiError> conflict(const Resource& resource, const std::string& name, const std::string& why) {
  return api_error(409, "Conflict",
                   "Operation cannot be fulfilled on " + quoted(resource, name) + ": " + why);
}

Json status(const ApiError& error) {
  return {{"kind", "Status"},       {"apiVersion", "v1"}, {"status", "Failure"},
          {"reason", error.reason}, {"code", error.code}, {"message", error.message}};
}

ApiError expired() {
  return {410, "Expired", "too old resource version", std::nullopt};
}

}  // namespace coxswain::memory_errors
