#include "operator/controller/work_queue.h"

#include <algorithm>
#include <functional>

namespace coxswain {

namespace {

// Clocks can be set: no sleep trusts one for longer.
constexpr Duration kLongestSleep = std::chrono::seconds(30);

WorkQueueMetrics& no_metrics() {
  static WorkQueueMetrics none;
  return none;
}

// The same for the same key and failure, so that simulations repeat.
double jitter(const WorkQueue::Key& key, int failure) {
  const size_t hash = std::hash<std::string>{}(key.first + "/" + key.second + "/" + std::to_string(failure));
  return static_cast<double>(hash % 1000) / 5000;
}

}  // namespace

WorkQueue::WorkQueue(Clock clock, WorkQueueOptions options, WorkQueueMetrics* metrics)
    : clock_(std::move(clock)), options_(options), metrics_(metrics == nullptr ? no_metrics() : *metrics) {}

void WorkQueue::tell_depth() {
  metrics_.depth(waiting_.size());
}

void WorkQueue::enqueue(const Key& key, TimePoint since) {
  if (const auto work = working_.find(key); work != working_.end()) {
    work->second.dirty = true;
    return;
  }
  if (!waiting_since_.try_emplace(key, since).second) return;
  waiting_.push_back(key);
  metrics_.added();
  tell_depth();
  changed_.notify_one();
}

void WorkQueue::cancel_timer(const Key& key) {
  const auto timer = timers_.find(key);
  if (timer == timers_.end()) return;
  timers_by_due_.erase({timer->second, key});
  timers_.erase(timer);
}

void WorkQueue::promote(TimePoint now) {
  while (!timers_by_due_.empty() && timers_by_due_.begin()->first <= now) {
    const auto [due, key] = *timers_by_due_.begin();
    cancel_timer(key);
    enqueue(key, due);
  }
}

void WorkQueue::add(const Key& key) {
  std::lock_guard lock(mutex_);
  if (!shut_down_) enqueue(key, clock_());
}

void WorkQueue::add_at(const Key& key, TimePoint due) {
  std::lock_guard lock(mutex_);
  if (shut_down_) return;
  const TimePoint now = clock_();
  if (due <= now) return enqueue(key, now);
  const auto timer = timers_.find(key);
  if (timer != timers_.end() && timer->second <= due) return;
  cancel_timer(key);
  timers_[key] = due;
  timers_by_due_.insert({due, key});
  changed_.notify_one();
}

Duration WorkQueue::next_backoff(const Key& key) {
  std::lock_guard lock(mutex_);
  const int failure = failures_[key]++;
  const double doubled =
      static_cast<double>(options_.backoff_base.count()) * static_cast<double>(1 << std::min(failure, 20));
  const double bounded = std::min(doubled, static_cast<double>(options_.backoff_max.count()));
  return Duration(static_cast<Duration::rep>(bounded * (1 + jitter(key, failure))));
}

void WorkQueue::add_rate_limited(const Key& key) {
  const TimePoint due = clock_() + next_backoff(key);
  metrics_.retried();
  add_at(key, due);
}

void WorkQueue::forget(const Key& key) {
  std::lock_guard lock(mutex_);
  failures_.erase(key);
}

std::optional<WorkQueue::Key> WorkQueue::take() {
  const TimePoint now = clock_();
  promote(now);
  if (waiting_.empty()) return std::nullopt;
  Key key = std::move(waiting_.front());
  waiting_.pop_front();
  const auto since = waiting_since_.find(key);
  metrics_.queue_duration(std::max(Duration(0), now - since->second));
  waiting_since_.erase(since);
  cancel_timer(key);
  working_[key] = {now};
  tell_depth();
  return key;
}

std::optional<WorkQueue::Key> WorkQueue::try_get() {
  std::lock_guard lock(mutex_);
  return take();
}

std::optional<WorkQueue::Key> WorkQueue::get() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (auto key = take()) {
      // Whoever slept until the next timer may be the one that goes to work now.
      if (!waiting_.empty() || !timers_.empty()) changed_.notify_one();
      return key;
    }
    if (shut_down_) return std::nullopt;
    if (timers_by_due_.empty()) {
      changed_.wait(lock);
    } else {
      const Duration left = timers_by_due_.begin()->first - clock_();
      changed_.wait_for(lock, std::clamp(left, Duration(1), kLongestSleep));
    }
  }
}

void WorkQueue::done(const Key& key) {
  std::lock_guard lock(mutex_);
  const auto work = working_.find(key);
  if (work == working_.end()) return;
  const TimePoint now = clock_();
  metrics_.work_duration(std::max(Duration(0), now - work->second.began));
  const bool again = work->second.dirty;
  working_.erase(work);
  if (again) enqueue(key, now);
  // Workers that wait for the end must see that nothing will be added again.
  if (shut_down_) changed_.notify_all();
  drained_.notify_all();
}

TimePoint WorkQueue::next_due() {
  std::lock_guard lock(mutex_);
  if (!waiting_.empty()) return TimePoint{};
  return timers_by_due_.empty() ? TimePoint::max() : timers_by_due_.begin()->first;
}

void WorkQueue::shut_down() {
  std::lock_guard lock(mutex_);
  promote(clock_());
  shut_down_ = true;
  timers_.clear();
  timers_by_due_.clear();
  changed_.notify_all();
}

bool WorkQueue::wait_until_drained(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return drained_.wait_for(lock, limit, [this] { return waiting_.empty() && working_.empty(); });
}

void WorkQueue::drop_waiting() {
  std::lock_guard lock(mutex_);
  waiting_.clear();
  waiting_since_.clear();
  for (auto& [_, work] : working_) work.dirty = false;
  tell_depth();
  changed_.notify_all();
}

}  // namespace coxswain
