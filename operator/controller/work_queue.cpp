#include "operator/controller/work_queue.h"

#include <algorithm>

namespace coxswain {

void WorkQueue::add(const Key& key, TimePoint due) {
  const auto [it, added] = due_.try_emplace(key, due);
  if (!added) it->second = std::min(it->second, due);
}

std::optional<WorkQueue::Key> WorkQueue::pop(TimePoint now) {
  const auto first = std::ranges::min_element(due_, {}, [](const auto& entry) { return entry.second; });
  if (first == due_.end() || first->second > now) return std::nullopt;
  Key key = first->first;
  due_.erase(first);
  return key;
}

TimePoint WorkQueue::next_due() const {
  const auto first = std::ranges::min_element(due_, {}, [](const auto& entry) { return entry.second; });
  return first == due_.end() ? TimePoint::max() : first->second;
}

}  // namespace coxswain
