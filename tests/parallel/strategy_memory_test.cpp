// What a rank holds under Zero3 falls as 1/ranks, plus the unit that is being computed.
#include <gtest/gtest.h>

#include "runtime/optim/adamw.h"
#include "runtime/parallel/make_strategy.h"
#include "tests/parallel/ranks.h"
#include "tests/parallel/tiny_model.h"

namespace coxswain {
namespace {

using testing::TinyModel;
using testing::TinyOptions;

TinyOptions model_of_blocks() {
  TinyOptions options;
  options.hidden = 128;
  options.blocks = 12;
  options.vocab = 100;
  options.tied = false;
  return options;
}

struct Sizes {
  int64_t all = 0;
  int64_t largest_unit = 0;
};

Sizes sizes_of(const TinyModel& model) {
  const ModelParameters parts = model.parts();
  const std::map<std::string, torch::Tensor> values(parts.parameters.begin(), parts.parameters.end());
  Sizes sizes;
  for (const ModelUnit& unit : parts.units) {
    int64_t bytes = 0;
    for (const std::string& name : unit.parameter_names) {
      bytes += static_cast<int64_t>(values.at(name).nbytes());
    }
    sizes.all += bytes;
    sizes.largest_unit = std::max(sizes.largest_unit, bytes);
  }
  return sizes;
}

class Zero3Memory : public ::testing::TestWithParam<std::tuple<int, bool>> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Zero3Memory, ::testing::Combine(::testing::Values(2, 3), ::testing::Bool()));

TEST_P(Zero3Memory, IsAShareAndOneUnit) {
  const auto [ranks, recompute] = GetParam();
  testing::run_ranks(
      ranks, [ranks = ranks, recompute = recompute](const std::shared_ptr<ProcessGroup>& group) {
        TinyModel model(model_of_blocks());
        const Sizes sizes = sizes_of(model);
        const int64_t padding = 14 * 2 * 16 * 4 * ranks;  // of 14 units: alignment and equal shards
        const auto strategy = make_strategy(DistributedBackend::kZero3, group, model.parts());
        AdamW optimizer({}, strategy->trainable());
        const torch::Tensor ids = torch::arange(90, torch::kInt64);
        for (int step = 0; step < 2; ++step) {
          strategy->begin_micro_batch(true);
          strategy->backward(model.loss_sum(ids, ids, strategy->runner(), recompute));
          optimizer.step(strategy->trainable(), 1e-3);
          strategy->zero_grad();
        }
        const ParameterMemory memory = strategy->memory();
        const int64_t share = sizes.all / ranks + padding;
        EXPECT_LE(memory.parameter_bytes, share);
        EXPECT_LE(memory.gradient_bytes, share);
        EXPECT_LE(optimizer.state_bytes(), 2 * share);
        EXPECT_LE(memory.peak_parameter_bytes, share + sizes.largest_unit + padding);
        EXPECT_LE(memory.peak_gradient_bytes, share + sizes.largest_unit + padding);
        EXPECT_GE(memory.peak_parameter_bytes, sizes.all / ranks + sizes.largest_unit);
      });
}

// The memory itself, not only our count of it: a released parameter has none.
TEST(Zero3Memory, ReleasedParametersHaveNoStorage) {
  testing::run_ranks(2, [](const std::shared_ptr<ProcessGroup>& group) {
    TinyModel model(model_of_blocks());
    const auto parts = model.parts();
    const auto strategy = make_strategy(DistributedBackend::kZero3, group, parts);
    const torch::Tensor ids = torch::arange(90, torch::kInt64);
    const torch::Tensor loss = model.loss_sum(ids, ids, strategy->runner(), false);
    size_t with_storage = 0;
    for (const auto& [name, tensor] : parts.parameters) {
      with_storage += tensor.storage().nbytes() > 0 ? 1 : 0;
    }
    EXPECT_EQ(with_storage, 2U);  // the head's norm and weight, which backward wants next
    strategy->begin_micro_batch(true);
    strategy->backward(loss);
    for (const auto& [name, tensor] : parts.parameters) {
      EXPECT_EQ(tensor.storage().nbytes(), 0U) << name;
      EXPECT_FALSE(tensor.grad().defined()) << name;
    }
  });
}

}  // namespace
}  // namespace coxswain
