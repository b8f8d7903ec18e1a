// The API's paths, query parameters and bodies. Pure.
#pragma once

#include <string>

#include "operator/client/api_client.h"
#include "operator/client/rest/http_transport.h"

namespace coxswain::api_request {

// "/api/v1/namespaces/NS/pods/NAME/status"; ns "": all namespaces, or a kind without; name "": the
// collection.
std::string path(const Resource& resource, const std::string& ns, const std::string& name = "",
                 const std::string& subresource = "");

HttpRequest get(const Resource& resource, const std::string& ns, const std::string& name);
HttpRequest list(const Resource& resource, const std::string& ns, const ListOptions& options);
HttpRequest watch(const Resource& resource, const std::string& ns, const WatchOptions& options);
HttpRequest create(const Resource& resource, const std::string& ns, const Json& object,
                   const WriteOptions& options);
// subresource: "" or "status". The name is the object's own: 400 without.
ApiResult<HttpRequest> update(const Resource& resource, const std::string& ns, const Json& object,
                              const WriteOptions& options, const std::string& subresource);
HttpRequest merge_patch(const Resource& resource, const std::string& ns, const std::string& name,
                        const Json& patch, const WriteOptions& options);
HttpRequest remove(const Resource& resource, const std::string& ns, const std::string& name,
                   const DeleteOptions& options);

}  // namespace coxswain::api_request
