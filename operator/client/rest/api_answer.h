// What an HTTP answer means: an object, a list, a watch event or an ApiError. Pure.
#pragma once

#include <optional>
#include <string>

#include "operator/client/api_client.h"
#include "operator/client/rest/http_transport.h"
#include "operator/client/rest/json_pruner.h"

namespace coxswain::api_answer {

// An answer that is no 2xx: the server's metav1.Status, or what can be told from a gateway's page.
ApiError error(const HttpResponse& response);
ApiError error(const HttpFailure& failure);

// Of all objects, managedFields is left out.
ApiResult<Json> object(HttpResult result);
// The same, where only the metadata was asked for: with the resource's kind and apiVersion.
ApiResult<Json> object(HttpResult result, const Resource& resource);
// Items of built-in kinds come without kind and apiVersion: they get the resource's. So do objects of which
// only the metadata was asked for.
ApiResult<ObjectList> list(HttpResult result, const Resource& resource,
                           const std::vector<std::string>& unread = {});
// What to leave out of the lines of a watch before they become events.
JsonPruner watch_pruner(const std::vector<std::string>& unread);
// One line of a watch's body. A line that is no event is an ERROR event that says so: what was missed is not
// known.
WatchEvent watch_event(const std::string& line, const Resource& resource);
// An ERROR event of the client's own: code 500, reason InternalError.
WatchEvent stream_error(const std::string& message);

}  // namespace coxswain::api_answer
