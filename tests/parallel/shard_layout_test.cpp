#include "runtime/parallel/shard_layout.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace coxswain {
namespace {

TEST(ShardLayout, AlignsParametersAndPadsToEqualShards) {
  const ShardLayout layout = shard_layout({10, 16, 5}, 2);
  EXPECT_EQ(layout.parameters, (std::vector<ElementRange>{{0, 10}, {16, 32}, {32, 37}}));
  EXPECT_EQ(layout.shard_size, 32);
  EXPECT_EQ(layout.padded_size(), 64);
  EXPECT_EQ(layout.shard(1), (ElementRange{32, 64}));
}

TEST(ShardLayout, SlicesCoverEveryElementOnce) {
  const std::vector<int64_t> sizes{1, 100, 7, 333, 64};
  for (const int world : {1, 2, 3, 5, 8}) {
    const ShardLayout layout = shard_layout(sizes, world);
    for (size_t parameter = 0; parameter < sizes.size(); ++parameter) {
      int64_t next = 0;
      for (int rank = 0; rank < world; ++rank) {
        if (const auto slice = parameter_slice(layout, parameter, rank)) {
          EXPECT_EQ(slice->in_parameter.begin, next);
          EXPECT_LE(slice->in_shard + slice->in_parameter.size(), layout.shard_size);
          next = slice->in_parameter.end;
        }
      }
      EXPECT_EQ(next, sizes[parameter]) << "world " << world << ", parameter " << parameter;
    }
  }
}

TEST(ShardLayout, RankMayHoldNothingOfAParameter) {
  const ShardLayout layout = shard_layout({16, 16}, 2);
  EXPECT_FALSE(parameter_slice(layout, 0, 1));
  EXPECT_FALSE(parameter_slice(layout, 1, 0));
}

std::vector<ElementRange> ranges_of(int64_t size, int world) {
  const ShardLayout layout = shard_layout({size}, world);
  std::vector<ElementRange> ranges;
  for (int rank = 0; rank < world; ++rank) {
    if (const auto slice = parameter_slice(layout, 0, rank)) {
      ranges.push_back(slice->in_parameter);
    }
  }
  return ranges;
}

TEST(Reshard, FindsEveryValueAmongTheShardsOfAnotherWorldSize) {
  std::vector<int64_t> values(1000);
  std::iota(values.begin(), values.end(), 0);
  const auto saved = ranges_of(1000, 3);
  for (const int world : {1, 2, 3, 4}) {
    for (const ElementRange& held : ranges_of(1000, world)) {
      std::vector<int64_t> loaded(held.size(), -1);
      for (const RangeCopy& copy : reshard(held, saved)) {
        for (int64_t i = 0; i < copy.size; ++i) {
          loaded[copy.to + i] = values[saved[copy.source].begin + copy.from + i];
        }
      }
      EXPECT_EQ(loaded, std::vector<int64_t>(values.begin() + held.begin, values.begin() + held.end));
    }
  }
}

TEST(Overlap, TouchingRangesShareNothing) {
  EXPECT_FALSE(overlap({0, 5}, {5, 9}));
  EXPECT_EQ(overlap({0, 6}, {5, 9}), (ElementRange{5, 6}));
}

}  // namespace
}  // namespace coxswain
