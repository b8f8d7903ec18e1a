// Which jobs are due for a pass, and when. A job is in it once, at the earliest time anyone asked for. One
// thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "operator/api/training_job.h"

namespace coxswain {

class WorkQueue {
 public:
  using Key = std::pair<std::string, std::string>;  // namespace, name

  void add(const Key& key, TimePoint due);
  // Takes out one that is due by `now`, the longest overdue first.
  std::optional<Key> pop(TimePoint now);
  // TimePoint::max() when empty.
  TimePoint next_due() const;
  void forget(const Key& key) { due_.erase(key); }

 private:
  std::map<Key, TimePoint> due_;
};

}  // namespace coxswain
