#include "runtime/data/batch.h"

#include <algorithm>

namespace coxswain {

int64_t count_targets(const Batch& batch) {
  int64_t targets = 0;
  for (int64_t row = 0; row < batch.rows; ++row) {
    const int64_t* labels = batch.labels.data() + row * batch.length;
    int64_t begin = 0;
    for (int64_t segment : batch.segments[row]) {
      for (int64_t t = begin + 1; t < begin + segment; ++t) targets += labels[t] != kIgnoredLabel;
      begin += segment;
    }
  }
  return targets;
}

Batch collate(const std::vector<const Row*>& rows, int64_t pad_id) {
  Batch batch;
  batch.rows = static_cast<int64_t>(rows.size());
  for (const Row* row : rows) batch.length = std::max(batch.length, static_cast<int64_t>(row->ids.size()));
  batch.ids.assign(batch.rows * batch.length, pad_id);
  batch.labels.assign(batch.rows * batch.length, kIgnoredLabel);
  for (int64_t b = 0; b < batch.rows; ++b) {
    const Row& row = *rows[b];
    std::ranges::copy(row.ids, batch.ids.begin() + b * batch.length);
    std::ranges::copy(row.labels, batch.labels.begin() + b * batch.length);
    batch.lengths.push_back(static_cast<int64_t>(row.ids.size()));
    batch.segments.push_back(row.segments);
  }
  return batch;
}

}  // namespace coxswain
