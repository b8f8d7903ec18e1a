// Who holds what of a sharded unit. Torch-free arithmetic, in elements.
//
// The parameters of one unit that are sharded together lie one after the other in a flat array, each aligned;
// the array is padded to world_size equal parts, and rank r holds the r-th. A parameter may lie over several
// ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace coxswain {

struct ElementRange {
  int64_t begin = 0;
  int64_t end = 0;  // one past the last
  int64_t size() const { return end - begin; }
  bool operator==(const ElementRange&) const = default;
};

// What both hold; nothing if they don't meet.
std::optional<ElementRange> overlap(const ElementRange& a, const ElementRange& b);

struct ShardLayout {
  int world_size = 1;
  int64_t shard_size = 0;                // elements each rank holds, padding included
  std::vector<ElementRange> parameters;  // in the flat array, in the order given

  int64_t padded_size() const { return shard_size * world_size; }
  ElementRange shard(int rank) const { return {rank * shard_size, (rank + 1) * shard_size}; }
};

// Parameters start at multiples of this (64 bytes of fp32), as vectorised kernels like it.
inline constexpr int64_t kShardAlignment = 16;

ShardLayout shard_layout(const std::vector<int64_t>& parameter_sizes, int world_size);

// The part of parameter `index` that `rank` holds.
struct ParameterSlice {
  ElementRange in_parameter;  // of the flattened parameter
  int64_t in_shard = 0;       // where it starts in the rank's shard
};
std::optional<ParameterSlice> parameter_slice(const ShardLayout& layout, size_t index, int rank);

// Where a held range of a flattened parameter finds its values among ranges saved by another number of ranks:
// for each saved range that meets it, (which, from where in the saved one, to where in the held one, how
// many).
struct RangeCopy {
  size_t source = 0;
  int64_t from = 0;
  int64_t to = 0;
  int64_t size = 0;
};
std::vector<RangeCopy> reshard(const ElementRange& held, const std::vector<ElementRange>& saved);

}  // namespace coxswain
