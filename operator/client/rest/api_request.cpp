#include "operator/client/rest/api_request.h"

#include "operator/client/rest/url.h"

namespace coxswain::api_request {

namespace {

constexpr char kJson[] = "application/json";
// The plain form after the comma is for servers that can't cut the object down.
constexpr char kMetadata[] = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
constexpr char kMetadataList[] =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

class Query {
 public:
  void add(const std::string& name, const std::string& value) {
    if (value.empty()) return;
    text_ += (text_.empty() ? "?" : "&") + name + "=" + percent_encode(value);
  }
  void add(const std::string& name, bool value) {
    if (value) add(name, std::string("true"));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string write_query(const WriteOptions& options) {
  Query query;
  if (options.dry_run) query.add("dryRun", std::string("All"));
  return query.text();
}

HttpRequest with_body(std::string method, std::string target, std::string content_type, const Json& body) {
  // Strings that are not UTF-8 can only come from outside (a pod's message); they must not end the program.
  return {std::move(method),
          std::move(target),
          kJson,
          std::move(content_type),
          body.dump(-1, ' ', false, Json::error_handler_t::replace),
          {}};
}

}  // namespace

std::string path(const Resource& resource, const std::string& ns, const std::string& name,
                 const std::string& subresource) {
  std::string result = resource.group.empty() ? "/api/" : "/apis/" + percent_encode(resource.group) + "/";
  result += percent_encode(resource.version);
  if (!ns.empty()) result += "/namespaces/" + percent_encode(ns);
  result += "/" + percent_encode(resource.plural);
  if (!name.empty()) result += "/" + percent_encode(name);
  if (!subresource.empty()) result += "/" + percent_encode(subresource);
  return result;
}

HttpRequest get(const Resource& resource, const std::string& ns, const std::string& name) {
  return {"GET", path(resource, ns, name), kJson, "", "", {}};
}

HttpRequest list(const Resource& resource, const std::string& ns, const ListOptions& options) {
  Query query;
  query.add("labelSelector", options.label_selector);
  if (options.limit > 0) query.add("limit", std::to_string(options.limit));
  query.add("continue", options.continue_token);
  // A later page is of the first one's version; naming one again is an error.
  if (options.continue_token.empty()) {
    query.add("resourceVersion", options.resource_version);
    query.add("resourceVersionMatch", options.resource_version_match);
  }
  return {"GET", path(resource, ns) + query.text(), options.metadata_only ? kMetadataList : kJson, "", "",
          {}};
}

HttpRequest watch(const Resource& resource, const std::string& ns, const WatchOptions& options) {
  Query query;
  query.add("watch", true);
  query.add("labelSelector", options.label_selector);
  query.add("resourceVersion", options.resource_version);
  query.add("allowWatchBookmarks", options.allow_bookmarks || options.send_initial_events);
  if (options.send_initial_events) {
    query.add("sendInitialEvents", true);
    query.add("resourceVersionMatch", std::string("NotOlderThan"));
  }
  if (options.server_timeout.count() > 0) {
    query.add("timeoutSeconds", std::to_string(options.server_timeout.count()));
  }
  return {"GET", path(resource, ns) + query.text(), options.metadata_only ? kMetadata : kJson, "", "", {}};
}

HttpRequest create(const Resource& resource, const std::string& ns, const Json& object,
                   const WriteOptions& options) {
  HttpRequest request = with_body("POST", path(resource, ns) + write_query(options), kJson, object);
  if (options.metadata_only) request.accept = kMetadata;
  return request;
}

ApiResult<HttpRequest> update(const Resource& resource, const std::string& ns, const Json& object,
                              const WriteOptions& options, const std::string& subresource) {
  const auto pointer = "/metadata/name"_json_pointer;
  const bool named = object.contains(pointer) && object.at(pointer).is_string();
  const std::string name = named ? object.at(pointer).get<std::string>() : "";
  if (name.empty()) return api_error(400, "BadRequest", "the object to update has no metadata.name");
  return with_body("PUT", path(resource, ns, name, subresource) + write_query(options), kJson, object);
}

HttpRequest merge_patch(const Resource& resource, const std::string& ns, const std::string& name,
                        const Json& patch, const WriteOptions& options) {
  return with_body("PATCH", path(resource, ns, name) + write_query(options), "application/merge-patch+json",
                   patch);
}

HttpRequest remove(const Resource& resource, const std::string& ns, const std::string& name,
                   const DeleteOptions& options) {
  Json body = {{"kind", "DeleteOptions"}, {"apiVersion", "v1"}};
  if (options.uid) body["preconditions"]["uid"] = *options.uid;
  if (options.resource_version) body["preconditions"]["resourceVersion"] = *options.resource_version;
  if (options.grace_period_seconds) body["gracePeriodSeconds"] = *options.grace_period_seconds;
  if (!options.propagation_policy.empty()) body["propagationPolicy"] = options.propagation_policy;
  if (options.dry_run) body["dryRun"] = Json::array({"All"});
  return with_body("DELETE", path(resource, ns, name), kJson, body);
}

}  // namespace coxswain::api_request
