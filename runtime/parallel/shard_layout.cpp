#include "runtime/parallel/shard_layout.h"

#include <algorithm>

namespace coxswain {
namespace {

int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

std::optional<ElementRange> overlap(const ElementRange& a, const ElementRange& b) {
  const ElementRange both{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  if (both.size() <= 0) {
    return std::nullopt;
  }
  return both;
}

ShardLayout shard_layout(const std::vector<int64_t>& parameter_sizes, int world_size) {
  ShardLayout layout;
  layout.world_size = world_size;
  int64_t end = 0;
  for (const int64_t size : parameter_sizes) {
    const int64_t begin = round_up(end, kShardAlignment);
    end = begin + size;
    layout.parameters.push_back({begin, end});
  }
  layout.shard_size = round_up((end + world_size - 1) / world_size, kShardAlignment);
  return layout;
}

std::optional<ParameterSlice> parameter_slice(const ShardLayout& layout, size_t index, int rank) {
  const ElementRange parameter = layout.parameters.at(index);
  const ElementRange shard = layout.shard(rank);
  const auto held = overlap(parameter, shard);
  if (!held) {
    return std::nullopt;
  }
  return ParameterSlice{{held->begin - parameter.begin, held->end - parameter.begin},
                        held->begin - shard.begin};
}

std::vector<RangeCopy> reshard(const ElementRange& held, const std::vector<ElementRange>& saved) {
  std::vector<RangeCopy> copies;
  for (size_t i = 0; i < saved.size(); ++i) {
    if (const auto both = overlap(held, saved[i])) {
      copies.push_back({i, both->begin - saved[i].begin, both->begin - held.begin, both->size()});
    }
  }
  return copies;
}

}  // namespace coxswain
