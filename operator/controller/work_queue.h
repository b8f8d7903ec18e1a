// Which keys are due for a pass, when, and in what order: first come, first served. A key is in it once,
// however often it is added, and is never handed out twice at a time: what is added while it is being worked
// on waits until that is done.
//
// Handing a key out takes all that was asked for it, later times too: a pass looks at everything and asks
// again for what is still to come.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "operator/client/clock.h"

namespace coxswain {

// What a queue tells of itself; the names are those of client-go's workqueue metrics. Called from any thread,
// perhaps under the queue's lock: it must not call the queue.
class WorkQueueMetrics {
 public:
  virtual ~WorkQueueMetrics() = default;
  virtual void depth(size_t) {}             // keys that wait for a worker
  virtual void added() {}                   // adds_total: a key has begun to wait
  virtual void retried() {}                 // retries_total: add_rate_limited
  virtual void queue_duration(Duration) {}  // from due to handed out
  virtual void work_duration(Duration) {}   // from handed out to done
};

struct WorkQueueOptions {
  // Of add_rate_limited: doubled with each failure in a row of that key, and up to a fifth more so that keys
  // that failed together don't come back together.
  Duration backoff_base = std::chrono::seconds(1);
  Duration backoff_max = std::chrono::minutes(5);
};

// Safe from any thread.
class WorkQueue {
 public:
  using Key = std::pair<std::string, std::string>;  // namespace, name

  // `metrics` may be null; else it must outlive the queue.
  explicit WorkQueue(Clock clock, WorkQueueOptions options = {}, WorkQueueMetrics* metrics = nullptr);

  void add(const Key& key);
  // Not before `due`; the earliest time asked for counts.
  void add_at(const Key& key, TimePoint due);
  // After the key's back-off, which grows.
  void add_rate_limited(const Key& key);
  // The back-off that add_rate_limited() would have used, counted as a failure.
  Duration next_backoff(const Key& key);
  // The key's next back-off is the first one again.
  void forget(const Key& key);

  // A key that is due, for the caller alone until done(key).
  std::optional<Key> try_get();
  // Waits for one. None: shut down, and nothing is left.
  std::optional<Key> get();
  void done(const Key& key);
  // When try_get() will have something: the epoch when it has now, TimePoint::max() when nothing is planned.
  TimePoint next_due();

  // From now on nothing is added, nothing delayed comes; what is due already is still handed out.
  void shut_down();
  // Waits, after shut_down(), until all is done; false: `limit` passed first.
  bool wait_until_drained(std::chrono::milliseconds limit);
  // Only what is being worked on is left.
  void drop_waiting();

 private:
  struct Work {
    TimePoint began;
    bool dirty = false;  // added meanwhile
  };

  // All are called with mutex_ held.
  void enqueue(const Key& key, TimePoint since);
  void promote(TimePoint now);
  std::optional<Key> take();
  void cancel_timer(const Key& key);
  void tell_depth();

  const Clock clock_;
  const WorkQueueOptions options_;
  WorkQueueMetrics& metrics_;
  std::mutex mutex_;
  std::condition_variable changed_;  // for get()
  std::condition_variable drained_;
  std::deque<Key> waiting_;
  std::map<Key, TimePoint> waiting_since_;
  std::map<Key, Work> working_;
  std::map<Key, TimePoint> timers_;
  std::set<std::pair<TimePoint, Key>> timers_by_due_;
  std::map<Key, int> failures_;
  bool shut_down_ = false;
};

}  // namespace coxswain
