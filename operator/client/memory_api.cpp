#include "operator/client/memory_api.h"

#include <algorithm>

#include "operator/client/memory_errors.h"
#include "operator/client/memory_stream.h"
#include "operator/client/metadata.h"

namespace coxswain {

namespace {

// An API server keeps a few minutes of changes; this many are more than any local run falls behind by.
constexpr size_t kHistoryLimit = 10000;

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
    const auto stream = weak.lock();
    if (stream) stream->offer(change.resource, change.type, change.object, change.before);
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
  Json& slot = kind(resource)[{metadata::namespace_name(object), metadata::name(object)}];
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
  collect_garbage(metadata::uid(object));
}

void MemoryApi::restore(const Resource& resource, const Json& object) {
  std::lock_guard lock(mutex_);
  store(resource, object);
}

ApiResult<Json> MemoryApi::bind_pod(const std::string& ns, const std::string& name, const std::string& node) {
  std::lock_guard lock(mutex_);
  const Json* pod = find(resources::kPods, ns, name);
  if (pod == nullptr) return memory_errors::not_found(resources::kPods, name);
  if (pod->contains("/spec/nodeName"_json_pointer)) {
    return memory_errors::conflict(resources::kPods, name, "pod " + name + " is already assigned to node");
  }
  Json next = *pod;
  next["spec"]["nodeName"] = node;
  return store(resources::kPods, std::move(next));
}

void MemoryApi::compact() {
  std::lock_guard lock(mutex_);
  history_.clear();
  snapshots_.clear();
  compacted_ = ++version_;
}

void MemoryApi::end_watches(bool expired) {
  std::lock_guard lock(mutex_);
  for (const auto& weak : streams_) {
    const auto stream = weak.lock();
    if (!stream) continue;
    if (expired) {
      stream->fail(memory_errors::expired());
    } else {
      stream->end();
    }
  }
  streams_.clear();
}

void MemoryApi::send_bookmarks() {
  std::lock_guard lock(mutex_);
  for (const auto& weak : streams_) {
    if (const auto stream = weak.lock()) stream->bookmark(version_, false);
  }
}

void MemoryApi::set_streaming_list(StreamingList mode) {
  std::lock_guard lock(mutex_);
  streaming_list_ = mode;
}

}  // namespace coxswain
