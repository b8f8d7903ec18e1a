#include "runtime/data/packer.h"

#include <algorithm>

#include "runtime/data/dataset.h"

namespace coxswain {

void Packer::add(std::span<const int64_t> sample) {
  while (!sample.empty()) {
    const auto room = static_cast<size_t>(block_size_) - ids_.size();
    const auto piece = sample.first(std::min(room, sample.size()));
    ids_.insert(ids_.end(), piece.begin(), piece.end());
    segments_.push_back(static_cast<int64_t>(piece.size()));
    sample = sample.subspan(piece.size());
    if (static_cast<int64_t>(ids_.size()) == block_size_) finish();
  }
}

void Packer::finish() {
  if (ids_.empty()) return;
  dataset_.append(ids_, {}, segments_);
  ids_.clear();
  segments_.clear();
}

}  // namespace coxswain
