#include "runtime/data/dataset.h"

#include <algorithm>

namespace coxswain {
namespace {

template <typename To, typename From>
void extend(std::vector<To>& to, const From& from) {
  std::ranges::transform(from, std::back_inserter(to), [](auto value) { return static_cast<To>(value); });
}

bool has_target(const Row& row) {
  int64_t begin = 0;
  for (int64_t segment : row.segments) {
    for (int64_t t = begin + 1; t < begin + segment; ++t) {
      if (row.labels[t] != kIgnoredLabel) return true;
    }
    begin += segment;
  }
  return false;
}

}  // namespace

Row Dataset::row(int64_t index) const {
  Row row;
  const auto begin = row_begin_[index], end = row_begin_[index + 1];
  const std::vector<int32_t>& labels = labels_.empty() ? ids_ : labels_;
  row.ids.assign(ids_.begin() + begin, ids_.begin() + end);
  row.labels.assign(labels.begin() + begin, labels.begin() + end);
  row.segments.assign(segments_.begin() + segment_begin_[index],
                      segments_.begin() + segment_begin_[index + 1]);
  return row;
}

void Dataset::append(std::span<const int64_t> ids, std::span<const int64_t> labels,
                     std::span<const int64_t> segments) {
  if (labels.empty()) labels = ids;
  if (labels_.empty() && !std::ranges::equal(labels, ids)) labels_ = ids_;
  const bool apart = !labels_.empty() || !std::ranges::equal(labels, ids);
  extend(ids_, ids);
  if (apart) extend(labels_, labels);
  row_begin_.push_back(static_cast<int64_t>(ids_.size()));
  if (segments.empty()) {
    segments_.push_back(static_cast<int32_t>(ids.size()));
  } else {
    extend(segments_, segments);
  }
  segment_begin_.push_back(static_cast<int64_t>(segments_.size()));
  longest_row_ = std::max(longest_row_, static_cast<int64_t>(ids.size()));
  rows_without_target_ += !has_target(row(size() - 1));
}

}  // namespace coxswain
