#include "operator/client/memory_api.h"

#include <algorithm>
#include <condition_variable>
#include <random>

#include "operator/api/parse.h"
#include "operator/client/label_selector.h"
#include "operator/client/memory_rules.h"

namespace coxswain {

namespace {

// An API server keeps a few minutes of changes; this many are more than any local run falls behind by.
constexpr size_t kHistoryLimit = 10000;

std::string text(const Json& object, const Json::json_pointer& path) {
  return object.contains(path) && object.at(path).is_string() ? object.at(path).get<std::string>() : "";
}

std::string name_of(const Json& object) {
  return text(object, "/metadata/name"_json_pointer);
}
std::string namespace_of(const Json& object) {
  return text(object, "/metadata/namespace"_json_pointer);
}
std::string uid_of(const Json& object) {
  return text(object, "/metadata/uid"_json_pointer);
}
std::string version_of(const Json& object) {
  return text(object, "/metadata/resourceVersion"_json_pointer);
}

bool has_finalizers(const Json& object) {
  const auto path = "/metadata/finalizers"_json_pointer;
  return object.contains(path) && !object.at(path).empty();
}

bool being_deleted(const Json& object) {
  return object.contains("/metadata/deletionTimestamp"_json_pointer);
}

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

const char kModified[] =
    "the object has been modified; please apply your changes to the latest version and try again";

Json expired_status() {
  return {{"kind", "Status"},    {"apiVersion", "v1"}, {"status", "Failure"},
          {"reason", "Expired"}, {"code", 410},        {"message", "too old resource version"}};
}

}  // namespace

// One open watch; shared with the MemoryApi, which may end before it.
class MemoryApi::Stream {
 public:
  Stream(Resource resource, std::string ns, LabelSelector selector, const WatchOptions& options)
      : resource_(std::move(resource)),
        namespace_(std::move(ns)),
        selector_(std::move(selector)),
        bookmarks_(options.allow_bookmarks),
        on_ready_(options.on_ready) {}

  // An object that stops matching the selector is DELETED to this watch, one that starts to is ADDED.
  void offer(const Change& change) {
    if (change.resource != resource_) return;
    if (!namespace_.empty() && namespace_of(change.object) != namespace_) return;
    const bool was = !change.before.is_null() && selector_.matches(change.before);
    const bool is = change.type != WatchEventType::kDeleted && selector_.matches(change.object);
    if (!was && !is) return;
    const auto type = !was ? WatchEventType::kAdded
                      : is ? WatchEventType::kModified
                           : WatchEventType::kDeleted;
    push({type, change.object});
  }

  void bookmark(uint64_t version) {
    if (!bookmarks_) return;
    push({WatchEventType::kBookmark,
          {{"kind", resource_.kind},
           {"apiVersion", resource_.api_version()},
           {"metadata", {{"resourceVersion", std::to_string(version)}}}}});
  }

  void push(WatchEvent event) {
    {
      std::lock_guard lock(mutex_);
      if (ended_) return;
      queue_.push_back(std::move(event));
    }
    signal();
  }

  void end() {
    {
      std::lock_guard lock(mutex_);
      ended_ = true;
    }
    signal();
  }

  std::optional<WatchEvent> next(std::chrono::milliseconds wait) {
    std::unique_lock lock(mutex_);
    if (queue_.empty() && !ended_ && wait.count() > 0) {
      ready_.wait_for(lock, wait, [&] { return !queue_.empty() || ended_; });
    }
    if (queue_.empty()) return std::nullopt;
    WatchEvent event = std::move(queue_.front());
    queue_.pop_front();
    return event;
  }

  bool ended() {
    std::lock_guard lock(mutex_);
    return ended_ && queue_.empty();
  }

  bool selects(const Json& object) const {
    return (namespace_.empty() || namespace_of(object) == namespace_) && selector_.matches(object);
  }

 private:
  void signal() {
    ready_.notify_all();
    if (on_ready_) on_ready_();
  }

  const Resource resource_;
  const std::string namespace_;
  const LabelSelector selector_;
  const bool bookmarks_;
  const std::function<void()> on_ready_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<WatchEvent> queue_;
  bool ended_ = false;
};

namespace {

template <typename Stream>
class MemoryWatch : public Watch {
 public:
  explicit MemoryWatch(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}
  std::optional<WatchEvent> next(std::chrono::milliseconds wait) override { return stream_->next(wait); }
  bool ended() const override { return stream_->ended(); }

 private:
  std::shared_ptr<Stream> stream_;
};

}  // namespace

MemoryApi::MemoryApi(Clock clock) : clock_(std::move(clock)) {}

MemoryApi::~MemoryApi() {
  end_watches(false);
}

MemoryApi::Kind& MemoryApi::kind(const Resource& resource) {
  auto& entry = kinds_[resource.group + "/" + resource.plural];
  entry.first = resource;
  return entry.second;
}

Json* MemoryApi::find(const Resource& resource, const std::string& ns, const std::string& name) {
  Kind& objects = kind(resource);
  const auto it = objects.find({ns, name});
  return it == objects.end() ? nullptr : &it->second;
}

void MemoryApi::publish(Change change) {
  std::erase_if(streams_, [](const auto& stream) { return stream.expired(); });
  for (const auto& weak : streams_) {
    if (const auto stream = weak.lock()) stream->offer(change);
  }
  history_.push_back(std::move(change));
  if (history_.size() > kHistoryLimit) {
    compacted_ = history_.front().version;
    history_.pop_front();
  }
}

Json& MemoryApi::store(const Resource& resource, Json object) {
  object["kind"] = resource.kind;
  object["apiVersion"] = resource.api_version();
  object["metadata"]["resourceVersion"] = std::to_string(++version_);
  Json& slot = kind(resource)[{namespace_of(object), name_of(object)}];
  Json before = std::move(slot);
  slot = std::move(object);
  const auto type = before.is_null() ? WatchEventType::kAdded : WatchEventType::kModified;
  publish({version_, resource, type, slot, std::move(before)});
  return slot;
}

void MemoryApi::erase(const Resource& resource, const Key& key) {
  Kind& objects = kind(resource);
  const auto it = objects.find(key);
  Json object = std::move(it->second);
  objects.erase(it);
  Json last = object;
  last["metadata"]["resourceVersion"] = std::to_string(++version_);
  publish({version_, resource, WatchEventType::kDeleted, std::move(last), object});
  collect_garbage(uid_of(object));
}

ApiResult<Json> MemoryApi::get(const Resource& resource, const std::string& ns, const std::string& name) {
  std::lock_guard lock(mutex_);
  const Json* object = find(resource, ns, name);
  if (object == nullptr) return not_found(resource, name);
  return *object;
}

ApiResult<ObjectList> MemoryApi::list(const Resource& resource, const std::string& ns,
                                      const ListOptions& options) {
  auto selector = LabelSelector::parse(options.label_selector);
  if (!selector) return tl::unexpected(selector.error());
  std::lock_guard lock(mutex_);
  ObjectList result{{}, std::to_string(version_)};
  for (const auto& [key, object] : kind(resource)) {
    if ((ns.empty() || key.first == ns) && selector->matches(object)) result.items.push_back(object);
  }
  return result;
}

ApiResult<std::unique_ptr<Watch>> MemoryApi::watch(const Resource& resource, const std::string& ns,
                                                   const WatchOptions& options) {
  auto selector = LabelSelector::parse(options.label_selector);
  if (!selector) return tl::unexpected(selector.error());
  uint64_t from = 0;
  if (!options.resource_version.empty()) {
    if (options.resource_version.find_first_not_of("0123456789") != std::string::npos) {
      return api_error(400, "BadRequest", "invalid resource version \"" + options.resource_version + "\"");
    }
    from = std::stoull(options.resource_version);
  }
  std::lock_guard lock(mutex_);
  auto stream = std::make_shared<Stream>(resource, ns, std::move(*selector), options);
  if (from == 0) {
    for (const auto& [key, object] : kind(resource)) {
      if (stream->selects(object)) stream->push({WatchEventType::kAdded, object});
    }
  } else if (from < compacted_) {
    stream->push({WatchEventType::kError, expired_status()});
    stream->end();
  } else {
    for (const Change& change : history_) {
      if (change.version > from) stream->offer(change);
    }
  }
  streams_.push_back(stream);
  return std::make_unique<MemoryWatch<Stream>>(std::move(stream));
}

ApiResult<Json> MemoryApi::create(const Resource& resource, const std::string& ns, const Json& object,
                                  const WriteOptions& options) {
  Json next = object;
  if (!version_of(next).empty()) {
    return api_error(400, "BadRequest", "resourceVersion should not be set on objects to be created");
  }
  if (const std::string own = namespace_of(next); !own.empty() && own != ns) {
    return api_error(400, "BadRequest",
                     "the namespace of the provided object does not match the namespace sent on the request");
  }
  next["metadata"]["namespace"] = ns;
  if (auto error = memory_rules::prepare_create(resource, next)) return tl::unexpected(std::move(*error));
  std::lock_guard lock(mutex_);
  if (find(resource, ns, name_of(next)) != nullptr) {
    return api_error(409, "AlreadyExists", quoted(resource, name_of(next)) + " already exists");
  }
  next["metadata"]["uid"] = random_uid();
  next["metadata"]["creationTimestamp"] = format_time(clock_());
  next["metadata"].erase("deletionTimestamp");
  next["metadata"].erase("deletionGracePeriodSeconds");
  if (options.dry_run) return next;
  Json stored = store(resource, std::move(next));
  if (owned_by_nobody(stored)) erase(resource, {ns, name_of(stored)});
  return stored;
}

ApiResult<Json> MemoryApi::replace(const Resource& resource, const Json& current, Json next,
                                   const WriteOptions& options) {
  if (options.dry_run || next == current)
    return next;  // a write that changes nothing makes no version and no event
  Json stored = store(resource, std::move(next));
  if (being_deleted(stored) && !has_finalizers(stored) &&
      stored.value("/metadata/deletionGracePeriodSeconds"_json_pointer, 0) == 0) {
    erase(resource, {namespace_of(stored), name_of(stored)});
  }
  return stored;
}

ApiResult<Json> MemoryApi::checked_update(const Resource& resource, const std::string& ns, const Json& object,
                                          const WriteOptions& options, bool status_only) {
  const Json* current = find(resource, ns, name_of(object));
  if (current == nullptr) return not_found(resource, name_of(object));
  if (!uid_of(object).empty() && uid_of(object) != uid_of(*current)) {
    return conflict(resource, name_of(object),
                    "Precondition failed: UID in precondition: " + uid_of(object) +
                        ", UID in object meta: " + uid_of(*current));
  }
  if (!version_of(object).empty() && version_of(object) != version_of(*current)) {
    return conflict(resource, name_of(object), kModified);
  }
  if (version_of(object).empty() && !resource.group.empty()) {
    return api_error(
        422, "Invalid",
        quoted(resource, name_of(object)) +
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
  if (current == nullptr) return not_found(resource, name);
  const std::string wanted = version_of(patch);
  if (!wanted.empty() && wanted != version_of(*current)) return conflict(resource, name, kModified);
  Json next = *current;
  next.merge_patch(patch);
  return checked_update(resource, ns, next, options, false);
}

ApiResult<Json> MemoryApi::remove(const Resource& resource, const std::string& ns, const std::string& name,
                                  const DeleteOptions& options) {
  std::lock_guard lock(mutex_);
  const Json* current = find(resource, ns, name);
  if (current == nullptr) return not_found(resource, name);
  if (options.uid && *options.uid != uid_of(*current)) {
    return conflict(resource, name,
                    "Precondition failed: UID in precondition: " + *options.uid +
                        ", UID in object meta: " + uid_of(*current));
  }
  if (options.resource_version && *options.resource_version != version_of(*current)) {
    return conflict(resource, name,
                    "Precondition failed: ResourceVersion in precondition: " + *options.resource_version +
                        ", ResourceVersion in object meta: " + version_of(*current));
  }
  Json answer = *current;
  if (options.dry_run) return answer;
  start_deletion(resource, answer,
                 memory_rules::grace_seconds(resource, answer, options.grace_period_seconds));
  if (const Json* left = find(resource, ns, name)) answer = *left;
  return answer;
}

void MemoryApi::start_deletion(const Resource& resource, const Json& object, int grace_seconds) {
  if (grace_seconds == 0 && !has_finalizers(object)) {
    erase(resource, {namespace_of(object), name_of(object)});
    return;
  }
  // A second DELETE can only shorten the time that the first one left.
  const auto grace_path = "/metadata/deletionGracePeriodSeconds"_json_pointer;
  if (being_deleted(object) && object.value(grace_path, 0) <= grace_seconds) return;
  Json next = object;
  next["metadata"]["deletionTimestamp"] = format_time(clock_() + std::chrono::seconds(grace_seconds));
  next["metadata"]["deletionGracePeriodSeconds"] = grace_seconds;
  store(resource, std::move(next));
}

bool MemoryApi::uid_exists(const std::string& uid) {
  return std::ranges::any_of(kinds_, [&](const auto& entry) {
    return std::ranges::any_of(entry.second.second,
                               [&](const auto& item) { return uid_of(item.second) == uid; });
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
    if (find(resource, namespace_of(object), name_of(object)) == nullptr) continue;
    start_deletion(resource, object, memory_rules::grace_seconds(resource, object, std::nullopt));
  }
}

void MemoryApi::restore(const Resource& resource, const Json& object) {
  std::lock_guard lock(mutex_);
  store(resource, object);
}

ApiResult<Json> MemoryApi::bind_pod(const std::string& ns, const std::string& name, const std::string& node) {
  std::lock_guard lock(mutex_);
  const Json* pod = find(resources::kPods, ns, name);
  if (pod == nullptr) return not_found(resources::kPods, name);
  if (pod->contains("/spec/nodeName"_json_pointer)) {
    return conflict(resources::kPods, name, "pod " + name + " is already assigned to node");
  }
  Json next = *pod;
  next["spec"]["nodeName"] = node;
  return store(resources::kPods, std::move(next));
}

void MemoryApi::compact() {
  std::lock_guard lock(mutex_);
  history_.clear();
  compacted_ = ++version_;
}

void MemoryApi::end_watches(bool expired) {
  std::lock_guard lock(mutex_);
  for (const auto& weak : streams_) {
    const auto stream = weak.lock();
    if (!stream) continue;
    if (expired) stream->push({WatchEventType::kError, expired_status()});
    stream->end();
  }
  streams_.clear();
}

void MemoryApi::send_bookmarks() {
  std::lock_guard lock(mutex_);
  for (const auto& weak : streams_) {
    if (const auto stream = weak.lock()) stream->bookmark(version_);
  }
}

}  // namespace coxswain
