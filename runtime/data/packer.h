// Packs tokenized samples into rows of one length. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace coxswain {

class Dataset;

// Appends samples end to end; every `block_size` tokens are a row of the data set, with the pieces of samples
// in it as its segments. A sample that doesn't fit goes on in the next row as a segment of its own. finish()
// makes the last, shorter row.
class Packer {
 public:
  Packer(Dataset& dataset, int64_t block_size) : dataset_(dataset), block_size_(block_size) {}

  void add(std::span<const int64_t> sample);
  void finish();

 private:
  Dataset& dataset_;
  int64_t block_size_;
  std::vector<int64_t> ids_;
  std::vector<int64_t> segments_;
};

}  // namespace coxswain
