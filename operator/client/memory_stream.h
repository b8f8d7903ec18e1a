// One open watch of a MemoryApi; shared with it, and either may end first.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "operator/client/api_client.h"
#include "operator/client/clock.h"
#include "operator/client/label_selector.h"

namespace coxswain {

// What a server sends where only metadata was asked for.
Json partial_object_metadata(const Json& object);

// Safe from any thread.
class MemoryStream {
 public:
  MemoryStream(Resource resource, std::string ns, LabelSelector selector, const WatchOptions& options,
               Clock clock);

  // A change of any object, whose last state was `before` (null when added). An object that stops matching
  // the selector is DELETED to this watch, one that starts to is ADDED.
  void offer(const Resource& resource, WatchEventType type, const Json& object, const Json& before);
  // An object that was there when the watch was opened.
  void offer_existing(const Resource& resource, const Json& object);
  void bookmark(uint64_t version, bool initial_events_end);
  void fail(const ApiError& error);
  void end();

  // on_ready is not called any more once this has returned.
  void close();
  std::optional<WatchEvent> next(std::chrono::milliseconds wait);
  bool ended();

 private:
  bool in_scope(const Json& object) const;
  void push(WatchEvent event);
  void signal();

  const Resource resource_;
  const std::string namespace_;
  const LabelSelector selector_;
  const WatchOptions options_;
  const Clock clock_;
  const TimePoint deadline_;
  std::mutex signal_mutex_;  // held while on_ready runs
  bool closed_ = false;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<WatchEvent> queue_;
  bool ended_ = false;
};

}  // namespace coxswain
