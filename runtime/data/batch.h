// What the data side hands to the training side. Torch-free.
#pragma once

#include <cstdint>
#include <vector>

namespace coxswain {

inline constexpr int64_t kIgnoredLabel = -100;

// One training row: token ids, and for each the label (the same id, or kIgnoredLabel). Labels are not
// shifted: position t is predicted from positions < t. `segments` holds the lengths of the samples that were
// packed into the row, in order; their sum is ids.size(); a row of one sample has one segment. Attention
// never crosses a segment and positions restart.
struct Row {
  std::vector<int64_t> ids;
  std::vector<int64_t> labels;
  std::vector<int64_t> segments;
};

// Rows padded on the right to one length T. Row-major [B, T]. A padded place has label kIgnoredLabel; it is
// told by `lengths`, never by its id.
struct Batch {
  int64_t rows = 0;                            // B
  int64_t length = 0;                          // T
  std::vector<int64_t> ids;                    // B·T
  std::vector<int64_t> labels;                 // B·T
  std::vector<int64_t> lengths;                // B
  std::vector<std::vector<int64_t>> segments;  // B × (segment lengths)
};

// Number of targets that contribute to the loss: labels at t ≥ 1 of a segment that aren't kIgnoredLabel (the
// first place of a segment has nothing to be predicted from).
int64_t count_targets(const Batch& batch);

Batch collate(const std::vector<const Row*>& rows, int64_t pad_id);

}  // namespace coxswain
