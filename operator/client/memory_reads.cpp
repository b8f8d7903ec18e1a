// The verbs of MemoryApi that read.
#include <algorithm>

#include "operator/client/label_selector.h"
#include "operator/client/memory_api.h"
#include "operator/client/memory_errors.h"
#include "operator/client/memory_stream.h"
#include "operator/client/metadata.h"

namespace coxswain {

namespace {

// A list that nobody takes to its end is forgotten when this many others have begun.
constexpr size_t kSnapshotsLimit = 64;

class MemoryWatch : public Watch {
 public:
  explicit MemoryWatch(std::shared_ptr<MemoryStream> stream) : stream_(std::move(stream)) {}
  ~MemoryWatch() override { stream_->close(); }
  std::optional<WatchEvent> next(std::chrono::milliseconds wait) override { return stream_->next(wait); }
  bool ended() const override { return stream_->ended(); }

 private:
  std::shared_ptr<MemoryStream> stream_;
};

ApiResult<uint64_t> parse_version(const std::string& text) {
  if (text.empty()) return 0;
  if (text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos) {
    return api_error(400, "BadRequest", "invalid resource version \"" + text + "\"");
  }
  return std::stoull(text);
}

ApiError too_large(uint64_t version, uint64_t current) {
  return {504, "Timeout",
          "Too large resource version: " + std::to_string(version) + ", current: " + std::to_string(current),
          std::chrono::seconds(1)};
}

}  // namespace

ApiResult<Json> MemoryApi::get(const Resource& resource, const std::string& ns, const std::string& name) {
  std::lock_guard lock(mutex_);
  const Json* object = find(resource, ns, name);
  if (object == nullptr) return memory_errors::not_found(resource, name);
  return *object;
}

ApiResult<ObjectList> MemoryApi::list(const Resource& resource, const std::string& ns,
                                      const ListOptions& options) {
  auto selector = LabelSelector::parse(options.label_selector);
  if (!selector) return tl::unexpected(selector.error());
  const auto version = parse_version(options.resource_version);
  if (!version) return tl::unexpected(version.error());
  std::lock_guard lock(mutex_);
  if (*version > version_) return tl::unexpected(too_large(*version, version_));
  if (!options.continue_token.empty()) return next_page(options);
  if (options.resource_version_match == "Exact" && *version < version_) {
    return tl::unexpected(memory_errors::expired());  // only the newest state is kept
  }
  Snapshot all = snapshot(resource, ns, *selector, options.metadata_only);
  all.counted = options.label_selector.empty();
  return first_page(std::move(all), options.limit);
}

MemoryApi::Snapshot MemoryApi::snapshot(const Resource& resource, const std::string& ns,
                                        const LabelSelector& selector, bool metadata_only) {
  Snapshot all{std::to_string(version_), {}, false};
  for (const auto& [key, object] : kind(resource)) {
    if ((!ns.empty() && key.first != ns) || !selector.matches(object)) continue;
    all.items.push_back(metadata_only ? partial_object_metadata(object) : object);
  }
  return all;
}

ObjectList MemoryApi::first_page(Snapshot snapshot, int64_t limit) {
  ObjectList list{{}, snapshot.version};
  const auto size = static_cast<int64_t>(snapshot.items.size());
  if (limit <= 0 || size <= limit) {
    list.items = std::move(snapshot.items);
    return list;
  }
  const auto end = snapshot.items.begin() + limit;
  list.items.assign(std::make_move_iterator(snapshot.items.begin()), std::make_move_iterator(end));
  snapshot.items.erase(snapshot.items.begin(), end);
  list.remaining = snapshot.counted ? size - limit : 0;
  // Of one length, so that the first in order is the oldest.
  list.continue_token = "page-" + std::to_string(1'000'000'000 + next_token_++);
  if (snapshots_.size() >= kSnapshotsLimit) snapshots_.erase(snapshots_.begin());
  snapshots_[list.continue_token] = std::move(snapshot);
  return list;
}

// The token stays good: an answer may be lost and asked for again.
ApiResult<ObjectList> MemoryApi::next_page(const ListOptions& options) {
  const auto rest = snapshots_.find(options.continue_token);
  if (rest == snapshots_.end()) {
    return api_error(410, "Expired", "The provided continue parameter is too old");
  }
  return first_page(rest->second, options.limit);
}

ApiResult<std::unique_ptr<Watch>> MemoryApi::watch(const Resource& resource, const std::string& ns,
                                                   const WatchOptions& options) {
  auto selector = LabelSelector::parse(options.label_selector);
  if (!selector) return tl::unexpected(selector.error());
  const auto from = parse_version(options.resource_version);
  if (!from) return tl::unexpected(from.error());
  std::lock_guard lock(mutex_);
  if (options.send_initial_events && streaming_list_ == StreamingList::kRefused) {
    return api_error(422, "Invalid",
                     "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: "
                     "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled");
  }
  auto stream = std::make_shared<MemoryStream>(resource, ns, std::move(*selector), options, clock_);
  replay(*stream, options);
  streams_.push_back(stream);
  return std::make_unique<MemoryWatch>(std::move(stream));
}

// What an opened watch is sent of the past.
void MemoryApi::replay(MemoryStream& stream, const WatchOptions& options) {
  const uint64_t from = parse_version(options.resource_version).value_or(0);
  const bool from_now = options.send_initial_events || options.resource_version.empty();
  if (from_now && streaming_list_ == StreamingList::kErrorEvent) {
    stream.fail({500,
                 "InternalError",
                 "a watch stream was requested by the client but the required storage feature "
                 "RequestWatchProgress is disabled",
                 {}});
  } else if (options.send_initial_events || from == 0) {
    // Every kind is looked through: the stream takes only its own.
    for (const auto& [_, entry] : kinds_) {
      for (const auto& [key, object] : entry.second) stream.offer_existing(entry.first, object);
    }
    if (options.send_initial_events && streaming_list_ == StreamingList::kServed) {
      stream.bookmark(version_, true);
    }
  } else if (from < compacted_) {
    stream.fail(memory_errors::expired());
  } else {
    for (const Change& change : history_) {
      if (change.version > from) stream.offer(change.resource, change.type, change.object, change.before);
    }
  }
}

}  // namespace coxswain
