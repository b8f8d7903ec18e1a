#include "operator/client/rest/api_answer.h"

#include <algorithm>
#include <map>

#include "operator/api/json_input.h"
#include "operator/client/rest/retry_policy.h"

namespace coxswain::api_answer {

namespace {

constexpr size_t kQuotedPage = 200;           // bytes of an answer that is no Status
constexpr int64_t kLongestRetryAfter = 3600;  // seconds; whoever asks for more is asked again then

std::string text(const Json& object, const std::string& field) {
  const auto it = object.is_object() ? object.find(field) : object.end();
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

std::string reason_of(int status) {
  static const std::map<int, std::string> reasons{{400, "BadRequest"},
                                                  {401, "Unauthorized"},
                                                  {403, "Forbidden"},
                                                  {404, "NotFound"},
                                                  {405, "MethodNotAllowed"},
                                                  {406, "NotAcceptable"},
                                                  {409, "Conflict"},
                                                  {410, "Expired"},
                                                  {413, "RequestEntityTooLarge"},
                                                  {415, "UnsupportedMediaType"},
                                                  {422, "Invalid"},
                                                  {429, "TooManyRequests"},
                                                  {500, "InternalError"},
                                                  {503, "ServiceUnavailable"},
                                                  {504, "Timeout"}};
  const auto it = reasons.find(status);
  return it == reasons.end() ? "Unknown" : it->second;
}

tl::unexpected<ApiError> garbled(int status, const std::string& what) {
  return api_error(0, "BadAnswer",
                   "the API server answered " + std::to_string(status) + " with a body that is " + what);
}

constexpr char kManagedFields[] = "metadata/managedFields";

// The paths of `unread`, and managedFields, of an object that lies at `prefix`.
JsonPruner pruner_at(const std::string& prefix, const std::vector<std::string>& unread) {
  std::vector<std::string> paths = {prefix + kManagedFields};
  for (const std::string& path : unread) paths.push_back(prefix + path);
  return JsonPruner(paths);
}

ApiResult<Json> parse(HttpResult result, const JsonPruner& pruner) {
  if (!result) return tl::unexpected(error(result.error()));
  if (result->status < 200 || result->status > 299) return tl::unexpected(error(*result));
  Json body = parse_json(pruner.prune(std::move(result->body)));
  if (!body.is_object()) return garbled(result->status, "no JSON object");
  return body;
}

void name_kind(Json& object, const Resource& resource) {
  if (!object.is_object()) return;
  const std::string kind = text(object, "kind");
  if (!kind.empty() && kind != "PartialObjectMetadata") return;
  object["kind"] = resource.kind;
  object["apiVersion"] = resource.api_version();
}

std::optional<WatchEventType> event_type(const std::string& name) {
  if (name == "ADDED") return WatchEventType::kAdded;
  if (name == "MODIFIED") return WatchEventType::kModified;
  if (name == "DELETED") return WatchEventType::kDeleted;
  if (name == "BOOKMARK") return WatchEventType::kBookmark;
  if (name == "ERROR") return WatchEventType::kError;
  return std::nullopt;
}

}  // namespace

ApiError error(const HttpFailure& failure) {
  switch (failure.kind) {
    case HttpFailure::Kind::kNotSent:
      return {0, "Unreachable", failure.message, std::nullopt};
    case HttpFailure::Kind::kNoAnswer:
      return {0, "NoAnswer", failure.message, std::nullopt};
    case HttpFailure::Kind::kTimeout:
      return {0, "ClientTimeout", failure.message, std::nullopt};
    case HttpFailure::Kind::kUntrusted:
      return {0, "Untrusted", failure.message, std::nullopt};
  }
  return {0, "NoAnswer", failure.message, std::nullopt};
}

ApiError error(const HttpResponse& response) {
  ApiError result{response.status, reason_of(response.status), "", parse_retry_after(response.retry_after)};
  const Json status = parse_json(response.body);
  if (text(status, "kind") == "Status") {
    if (const std::string reason = text(status, "reason"); !reason.empty()) result.reason = reason;
    result.message = text(status, "message");
    const auto seconds = "/details/retryAfterSeconds"_json_pointer;
    if (!result.retry_after && status.contains(seconds)) {
      if (const auto asked = whole_number(status.at(seconds)); asked && *asked >= 0)
        result.retry_after = std::chrono::seconds(*asked);
    }
  }
  if (result.retry_after) {
    result.retry_after = std::min(*result.retry_after, std::chrono::seconds(kLongestRetryAfter));
  }
  if (result.message.empty()) {
    result.message = "HTTP " + std::to_string(response.status);
    if (!response.body.empty()) result.message += ": " + response.body.substr(0, kQuotedPage);
  }
  return result;
}

ApiResult<Json> object(HttpResult result) {
  static const JsonPruner pruner = pruner_at("", {});
  return parse(std::move(result), pruner);
}

ApiResult<Json> object(HttpResult result, const Resource& resource) {
  auto answer = object(std::move(result));
  if (answer) name_kind(*answer, resource);
  return answer;
}

ApiResult<ObjectList> list(HttpResult result, const Resource& resource,
                           const std::vector<std::string>& unread) {
  const int status = result ? result->status : 0;
  auto body = parse(std::move(result), pruner_at("items/*/", unread));
  if (!body) return tl::unexpected(body.error());
  ObjectList list;
  const Json metadata = body->value("metadata", Json::object());
  list.resource_version = text(metadata, "resourceVersion");
  list.continue_token = text(metadata, "continue");
  const auto remaining = metadata.is_object() ? metadata.find("remainingItemCount") : metadata.end();
  if (remaining != metadata.end()) list.remaining = whole_number(*remaining).value_or(0);
  const auto items = body->find("items");
  // Go's encoder writes an empty list of some kinds as null.
  if (items == body->end() || items->is_null()) return list;
  if (!items->is_array()) return garbled(status, "no list: its items are no array");
  list.items.reserve(items->size());
  for (Json& item : *items) {
    name_kind(item, resource);
    list.items.push_back(std::move(item));
  }
  return list;
}

WatchEvent stream_error(const std::string& message) {
  return {WatchEventType::kError,
          {{"kind", "Status"},
           {"apiVersion", "v1"},
           {"status", "Failure"},
           {"reason", "InternalError"},
           {"code", 500},
           {"message", message}}};
}

JsonPruner watch_pruner(const std::vector<std::string>& unread) {
  return pruner_at("object/", unread);
}

WatchEvent watch_event(const std::string& line, const Resource& resource) {
  Json event = parse_json(line);
  const auto type = event_type(text(event, "type"));
  const auto object = event.is_object() ? event.find("object") : event.end();
  if (!type || object == event.end() || !object->is_object()) {
    // A server that fails before its first event sends a bare Status.
    if (text(event, "kind") == "Status") return {WatchEventType::kError, std::move(event)};
    return stream_error("a line of the watch is no event");
  }
  if (*type != WatchEventType::kError) name_kind(*object, resource);
  return {*type, std::move(*object)};
}

}  // namespace coxswain::api_answer
