// A watch over a streamed answer: bytes come in on the transport's threads, events go out to the caller's.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "operator/client/api_client.h"
#include "operator/client/rest/http_transport.h"
#include "operator/client/rest/json_pruner.h"
#include "operator/client/rest/line_framer.h"

namespace coxswain {

struct WatchLimits {
  size_t max_line_bytes = 16 << 20;  // a longer event ends the stream with an ERROR
  // Bytes of events that may wait for next(); beyond, nothing more is read from the connection.
  size_t max_queued_bytes = 4 << 20;
};

// Lines of a body, queued as text: parsing is left to the thread that wants them.
class WatchQueue : public HttpBodySink {
 public:
  WatchQueue(WatchLimits limits, std::function<void()> on_ready);

  bool on_bytes(std::string_view bytes) override;
  void on_end() override;
  // Waits for an on_ready that is running; none follows.
  void detach();

  struct Popped {
    std::optional<std::string> line;
    bool overrun = false;  // a line was too long; nothing follows
    bool room = false;     // the stream was held back and there is room again
  };
  Popped pop(std::chrono::milliseconds wait);
  bool ended() const;

 private:
  void signal();

  const WatchLimits limits_;
  std::mutex signal_mutex_;
  std::function<void()> on_ready_;
  mutable std::mutex mutex_;
  std::condition_variable ready_;
  LineFramer framer_;
  std::deque<std::string> lines_;
  size_t queued_bytes_ = 0;
  bool held_back_ = false;
  bool overrun_ = false;  // its ERROR has not been popped yet
  bool ended_ = false;
};

// Once it is destroyed, on_ready is not called any more.
class RestWatch : public Watch {
 public:
  RestWatch(Resource resource, const std::vector<std::string>& unread, std::shared_ptr<WatchQueue> queue,
            std::unique_ptr<HttpStream> stream);
  ~RestWatch() override;

  std::optional<WatchEvent> next(std::chrono::milliseconds wait) override;
  bool ended() const override;

 private:
  const Resource resource_;
  const JsonPruner pruner_;
  const std::shared_ptr<WatchQueue> queue_;
  std::unique_ptr<HttpStream> stream_;  // null after an ERROR
};

}  // namespace coxswain
