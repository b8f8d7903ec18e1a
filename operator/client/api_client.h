// The one seam to a Kubernetes API: objects are JSON as on the wire, failures are values.
// Implementations: MemoryApi (in process), FaultyApi (wraps another one); RestApiClient speaks HTTP.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

namespace coxswain {

using Json = nlohmann::json;

// A kind of object as the API's paths name it (GroupVersionResource), and the kind its objects carry.
struct Resource {
  std::string group;    // "" for the core group
  std::string version;  // "v1"
  std::string plural;   // "pods"
  std::string kind;     // "Pod"

  // "v1", "training.coxswain.dev/v1alpha1"
  std::string api_version() const { return group.empty() ? version : group + "/" + version; }
  bool operator==(const Resource&) const = default;
};

namespace resources {
extern const Resource kPods;
extern const Resource kServices;
extern const Resource kConfigMaps;
extern const Resource kEvents;  // of events.k8s.io
extern const Resource kNodes;   // has no namespace
extern const Resource kLeases;
extern const Resource kTrainingJobs;
}  // namespace resources

// What the API server answered instead of the object: a metav1.Status. Code 0: no answer at all (the
// connection was refused or lost, so a write may or may not have happened).
struct ApiError {
  int code = 0;
  std::string reason;   // NotFound, AlreadyExists, Conflict, Invalid, Forbidden, Expired, TooManyRequests …
  std::string message;  // the server's sentence
  std::optional<std::chrono::seconds> retry_after;

  bool not_found() const { return code == 404; }
  bool already_exists() const { return code == 409 && reason == "AlreadyExists"; }
  bool conflict() const { return code == 409 && reason == "Conflict"; }
  bool expired() const { return code == 410; }
  // The same request would be refused again, whatever the state of the cluster: 400, 405, 413, 415, 422.
  bool permanent() const;
};

template <typename T>
using ApiResult = tl::expected<T, ApiError>;

tl::unexpected<ApiError> api_error(int code, std::string reason, std::string message);

struct ListOptions {
  std::string label_selector{};  // "a=b,c!=d,e in (f,g),h,!i"; "": everything
  // Pages: at most this many objects (0: all), and from where the page before ended.
  int64_t limit = 0;
  std::string continue_token{};
  // "": the newest. "0" or a version, with what it means: Exact or NotOlderThan.
  std::string resource_version{};
  std::string resource_version_match{};
  bool metadata_only = false;  // kind, apiVersion and metadata of each object, nothing else
  // What the caller doesn't read, as "spec/containers/*/env"; a client may leave it out.
  std::vector<std::string> unread{};
};

struct ObjectList {
  std::vector<Json> items;
  std::string resource_version;  // to be handed back to watch(); compared only by compare_versions()
  std::string continue_token{};  // not empty: there are more, for a list() with the same options and this
  int64_t remaining = 0;         // about how many more; 0: none, or the server doesn't say
};

struct WatchOptions {
  std::string label_selector{};
  // Events after this version. "": first an ADDED for each object there is.
  std::string resource_version{};
  bool allow_bookmarks = true;
  // Called, from any thread and perhaps under locks (so it must only signal), when next() may have something.
  std::function<void()> on_ready{};
  // A streaming list: an ADDED for each object there is, then a BOOKMARK with the annotation
  // k8s.io/initial-events-end. A server may refuse it (422, an ERROR event) or ignore it.
  bool send_initial_events = false;
  std::chrono::seconds server_timeout{0};  // the server ends the stream after about this; 0: as it likes
  bool metadata_only = false;              // as in ListOptions
  std::vector<std::string> unread{};       // as in ListOptions
};

enum class WatchEventType { kAdded, kModified, kDeleted, kBookmark, kError };

struct WatchEvent {
  WatchEventType type;
  // The object; of a BOOKMARK only metadata.resourceVersion counts; of an ERROR it is a metav1.Status, and
  // the stream ends after it.
  Json object;
};

// An open watch. Used by one thread; destroying it closes the stream.
class Watch {
 public:
  virtual ~Watch() = default;
  // The next event; none if `wait` passes first, or the stream has ended.
  virtual std::optional<WatchEvent> next(std::chrono::milliseconds wait) = 0;
  // True when the server ended the stream and next() has given everything: watch again from the last version
  // seen.
  virtual bool ended() const = 0;
};

struct WriteOptions {
  bool dry_run = false;  // validated and answered, nothing stored
  // Of create() only: the caller reads no more of the answer than metadata; a client may leave the rest out.
  bool metadata_only = false;
};

struct DeleteOptions {
  std::optional<std::string> uid;               // precondition: 409 Conflict if the object is another one
  std::optional<std::string> resource_version;  // precondition
  std::optional<int> grace_period_seconds;      // pods; absent: the pod's own; 0: gone at once
  bool dry_run = false;
  std::string propagation_policy{};  // Background, Foreground, Orphan; "": the kind's own
};

// Every call is safe from any thread. A namespace of "" is all namespaces, for list and watch only.
class ApiClient {
 public:
  virtual ~ApiClient() = default;

  virtual ApiResult<Json> get(const Resource&, const std::string& ns, const std::string& name) = 0;
  virtual ApiResult<ObjectList> list(const Resource&, const std::string& ns, const ListOptions&) = 0;
  // A version that is too old to watch from comes as 410 here or as an ERROR event: a caller must expect
  // both.
  virtual ApiResult<std::unique_ptr<Watch>> watch(const Resource&, const std::string& ns,
                                                  const WatchOptions&) = 0;
  virtual ApiResult<Json> create(const Resource&, const std::string& ns, const Json& object,
                                 const WriteOptions&) = 0;
  // Replaces all but the status; metadata.resourceVersion must be the stored one's (409 Conflict).
  virtual ApiResult<Json> update(const Resource&, const std::string& ns, const Json& object,
                                 const WriteOptions&) = 0;
  // Replaces only the status subresource, with the same rule.
  virtual ApiResult<Json> update_status(const Resource&, const std::string& ns, const Json& object,
                                        const WriteOptions&) = 0;
  // RFC 7386; a metadata.resourceVersion in the patch is a precondition.
  virtual ApiResult<Json> merge_patch(const Resource&, const std::string& ns, const std::string& name,
                                      const Json& patch, const WriteOptions&) = 0;
  // The object as it was or as it now awaits its end (deletionTimestamp); from a real API server a
  // metav1.Status with status Success where nothing of the object is left.
  virtual ApiResult<Json> remove(const Resource&, const std::string& ns, const std::string& name,
                                 const DeleteOptions&) = 0;
};

}  // namespace coxswain
