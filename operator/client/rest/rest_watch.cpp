#include "operator/client/rest/rest_watch.h"

#include "operator/client/rest/api_answer.h"

namespace coxswain {

WatchQueue::WatchQueue(WatchLimits limits, std::function<void()> on_ready)
    : limits_(limits), on_ready_(std::move(on_ready)), framer_(limits.max_line_bytes) {}

bool WatchQueue::on_bytes(std::string_view bytes) {
  bool news = false;
  bool more = true;
  {
    std::lock_guard lock(mutex_);
    if (ended_) return true;
    const bool fits = framer_.feed(bytes, [&](std::string line) {
      queued_bytes_ += line.size();
      lines_.push_back(std::move(line));
      news = true;
    });
    if (!fits) {
      overrun_ = ended_ = news = true;
    } else if (queued_bytes_ > limits_.max_queued_bytes) {
      held_back_ = true;
      more = false;
    }
  }
  if (news) signal();
  return more;
}

void WatchQueue::signal() {
  ready_.notify_all();
  std::lock_guard lock(signal_mutex_);
  if (on_ready_) on_ready_();
}

void WatchQueue::detach() {
  std::lock_guard lock(signal_mutex_);
  on_ready_ = nullptr;
}

void WatchQueue::on_end() {
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
  }
  signal();
}

WatchQueue::Popped WatchQueue::pop(std::chrono::milliseconds wait) {
  std::unique_lock lock(mutex_);
  if (lines_.empty() && !ended_ && wait.count() > 0) {
    ready_.wait_for(lock, wait, [&] { return !lines_.empty() || ended_; });
  }
  Popped popped;
  if (lines_.empty()) {
    popped.overrun = std::exchange(overrun_, false);
    return popped;
  }
  popped.line = std::move(lines_.front());
  lines_.pop_front();
  queued_bytes_ -= popped.line->size();
  if (held_back_ && queued_bytes_ <= limits_.max_queued_bytes / 2) {
    held_back_ = false;
    popped.room = true;
  }
  return popped;
}

bool WatchQueue::ended() const {
  std::lock_guard lock(mutex_);
  return ended_ && lines_.empty() && !overrun_;
}

RestWatch::RestWatch(Resource resource, const std::vector<std::string>& unread,
                     std::shared_ptr<WatchQueue> queue, std::unique_ptr<HttpStream> stream)
    : resource_(std::move(resource)),
      pruner_(api_answer::watch_pruner(unread)),
      queue_(std::move(queue)),
      stream_(std::move(stream)) {}

RestWatch::~RestWatch() {
  queue_->detach();
}

std::optional<WatchEvent> RestWatch::next(std::chrono::milliseconds wait) {
  if (!stream_) return std::nullopt;
  auto popped = queue_->pop(wait);
  if (popped.room) stream_->resume();
  std::optional<WatchEvent> event;
  if (popped.line) {
    event = api_answer::watch_event(pruner_.prune(std::move(*popped.line)), resource_);
  } else if (popped.overrun) {
    event = api_answer::stream_error("an event of the watch on " + resource_.plural + " is too long");
  }
  if (event && event->type == WatchEventType::kError) stream_.reset();
  return event;
}

bool RestWatch::ended() const {
  return !stream_ || queue_->ended();
}

}  // namespace coxswain
