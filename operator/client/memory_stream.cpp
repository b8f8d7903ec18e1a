#include "operator/client/memory_stream.h"

#include "operator/client/memory_errors.h"
#include "operator/client/metadata.h"

namespace coxswain {

Json partial_object_metadata(const Json& object) {
  return {{"kind", "PartialObjectMetadata"},
          {"apiVersion", "meta.k8s.io/v1"},
          {"metadata", object.value("metadata", Json::object())}};
}

MemoryStream::MemoryStream(Resource resource, std::string ns, LabelSelector selector,
                           const WatchOptions& options, Clock clock)
    : resource_(std::move(resource)),
      namespace_(std::move(ns)),
      selector_(std::move(selector)),
      options_(options),
      clock_(std::move(clock)),
      deadline_(options.server_timeout.count() == 0 ? TimePoint::max() : clock_() + options.server_timeout) {}

bool MemoryStream::in_scope(const Json& object) const {
  return namespace_.empty() || metadata::namespace_name(object) == namespace_;
}

void MemoryStream::offer(const Resource& resource, WatchEventType type, const Json& object,
                         const Json& before) {
  if (resource != resource_ || !in_scope(object)) return;
  const bool was = !before.is_null() && selector_.matches(before);
  const bool is = type != WatchEventType::kDeleted && selector_.matches(object);
  if (!was && !is) return;
  push({!was ? WatchEventType::kAdded : is ? WatchEventType::kModified : WatchEventType::kDeleted, object});
}

void MemoryStream::offer_existing(const Resource& resource, const Json& object) {
  if (resource != resource_ || !in_scope(object) || !selector_.matches(object)) return;
  push({WatchEventType::kAdded, object});
}

void MemoryStream::bookmark(uint64_t version, bool initial_events_end) {
  if (!options_.allow_bookmarks) return;
  Json object = {{"kind", resource_.kind},
                 {"apiVersion", resource_.api_version()},
                 {"metadata", {{"resourceVersion", std::to_string(version)}}}};
  if (initial_events_end) object["metadata"]["annotations"] = {{"k8s.io/initial-events-end", "true"}};
  push({WatchEventType::kBookmark, std::move(object)});
}

void MemoryStream::fail(const ApiError& error) {
  push({WatchEventType::kError, memory_errors::status(error)});
  end();
}

void MemoryStream::push(WatchEvent event) {
  if (options_.metadata_only && event.type != WatchEventType::kError) {
    event.object = partial_object_metadata(event.object);
  }
  {
    std::lock_guard lock(mutex_);
    if (ended_) return;
    queue_.push_back(std::move(event));
  }
  signal();
}

void MemoryStream::end() {
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
  }
  signal();
}

void MemoryStream::signal() {
  ready_.notify_all();
  std::lock_guard lock(signal_mutex_);
  if (!closed_ && options_.on_ready) options_.on_ready();
}

void MemoryStream::close() {
  std::lock_guard lock(signal_mutex_);
  closed_ = true;
}

std::optional<WatchEvent> MemoryStream::next(std::chrono::milliseconds wait) {
  std::unique_lock lock(mutex_);
  if (queue_.empty() && !ended_ && wait.count() > 0) {
    ready_.wait_for(lock, wait, [&] { return !queue_.empty() || ended_; });
  }
  if (queue_.empty()) return std::nullopt;
  WatchEvent event = std::move(queue_.front());
  queue_.pop_front();
  return event;
}

bool MemoryStream::ended() {
  std::lock_guard lock(mutex_);
  if (clock_() >= deadline_) ended_ = true;
  return ended_ && queue_.empty();
}

}  // namespace coxswain
