#include "operator/client/reflector.h"

#include <algorithm>

namespace coxswain {

namespace {

// First wait after a failure; doubled each time, so that a server in trouble is left alone.
constexpr std::chrono::milliseconds kBackoffBase{200};
constexpr std::chrono::milliseconds kBackoffMax{30000};

std::string version_of(const Json& object) {
  return object.value("/metadata/resourceVersion"_json_pointer, "");
}

Reflector::Key key_of(const Json& object) {
  return {object.value("/metadata/namespace"_json_pointer, ""),
          object.value("/metadata/name"_json_pointer, "")};
}

}  // namespace

Reflector::Reflector(ApiClient& api, Resource resource, std::string ns, std::string label_selector,
                     Clock clock, OnChange on_change, std::function<void()> on_ready)
    : api_(api),
      resource_(std::move(resource)),
      namespace_(std::move(ns)),
      label_selector_(std::move(label_selector)),
      clock_(std::move(clock)),
      on_change_(std::move(on_change)),
      on_ready_(std::move(on_ready)) {}

const Json* Reflector::find(const std::string& ns, const std::string& name) const {
  const auto it = objects_.find({ns, name});
  return it == objects_.end() ? nullptr : &it->second;
}

void Reflector::fail() {
  const auto wait = std::min(kBackoffMax, kBackoffBase * (1 << std::min(failures_, 8)));
  ++failures_;
  not_before_ = clock_() + wait;
}

TimePoint Reflector::poll() {
  if (clock_() < not_before_) return not_before_;
  // One turn more than list → watch → drain takes: a server that ends every stream at once is met again only
  // after a back-off, never in a tight loop.
  for (int turn = 0; turn < 2; ++turn) {
    if (version_.empty() && !relist()) return not_before_;
    if (!watch_ && !open_watch()) return not_before_;
    drain();
    if (watch_) return TimePoint::max();
    if (turn > 0) fail();
  }
  return not_before_;
}

bool Reflector::relist() {
  auto list = api_.list(resource_, namespace_, {label_selector_});
  if (!list) {
    fail();
    return false;
  }
  std::map<Key, Json> gone = objects_;
  for (const Json& object : list->items) {
    gone.erase(key_of(object));
    apply(object, false);
  }
  for (const auto& [key, object] : gone) apply(object, true);
  version_ = list->resource_version;
  filled_ = true;
  return true;
}

bool Reflector::open_watch() {
  auto watch = api_.watch(resource_, namespace_, {label_selector_, version_, true, on_ready_});
  if (!watch) {
    if (watch.error().expired()) version_.clear();
    fail();
    return false;
  }
  watch_ = std::move(*watch);
  return true;
}

void Reflector::drain() {
  while (auto event = watch_->next(std::chrono::milliseconds(0))) {
    if (event->type == WatchEventType::kError) {
      // 410 or anything else: what was missed is not known, so list again.
      version_.clear();
      watch_.reset();
      return;
    }
    failures_ = 0;
    version_ = version_of(event->object);
    if (event->type == WatchEventType::kBookmark) continue;
    apply(event->object, event->type == WatchEventType::kDeleted);
  }
  if (watch_->ended()) watch_.reset();
}

void Reflector::apply(const Json& object, bool deleted) {
  const Key key = key_of(object);
  const auto it = objects_.find(key);
  const Json before = it == objects_.end() ? Json() : it->second;
  if (deleted) {
    if (before.is_null()) return;
    objects_.erase(it);
    on_change_(before, Json());
    return;
  }
  if (!before.is_null() && version_of(before) == version_of(object)) return;
  objects_[key] = object;
  on_change_(before, object);
}

void Reflector::remember(const Json& object) {
  apply(object, false);
}

}  // namespace coxswain
