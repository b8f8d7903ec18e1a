#include "runtime/optim/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "runtime/optim/weight_decay.h"

namespace coxswain {
namespace {

using ::testing::DoubleNear;
using ::testing::Pointwise;

std::vector<double> factors(LrSchedule schedule, int64_t count) {
  std::vector<double> values;
  for (int64_t step = 0; step < count; ++step) {
    values.push_back(learning_rate_factor(schedule, step, 2, 7));
  }
  return values;
}

// transformers' values for 2 warm-up steps of 7; optim_peer_test asks transformers itself for more.
TEST(Schedule, LinearRisesThenFallsToZero) {
  EXPECT_THAT(factors(LrSchedule::kLinear, 9),
              Pointwise(DoubleNear(1e-15), std::vector<double>{0, 0.5, 1, 0.8, 0.6, 0.4, 0.2, 0, 0}));
}

TEST(Schedule, CosineFallsToZero) {
  EXPECT_THAT(
      factors(LrSchedule::kCosine, 8),
      Pointwise(DoubleNear(1e-15), std::vector<double>{0, 0.5, 1, 0.9045084971874737, 0.6545084971874737,
                                                       0.34549150281252633, 0.09549150281252633, 0}));
}

TEST(Schedule, ConstantIgnoresWarmUp) {
  EXPECT_THAT(factors(LrSchedule::kConstant, 3), ::testing::ElementsAre(1, 1, 1));
  EXPECT_THAT(factors(LrSchedule::kConstantWithWarmup, 4), ::testing::ElementsAre(0, 0.5, 1, 1));
}

TEST(Schedule, WarmUpStepsRoundUp) {
  EXPECT_EQ(warmup_steps(0.1, 21), 3);
  EXPECT_EQ(warmup_steps(0.1, 20), 2);
  EXPECT_EQ(warmup_steps(0, 20), 0);
}

TEST(Schedule, RateIsTheBaseRateTimesTheFactor) {
  OptimizerConfig config;
  config.learning_rate = 2e-4;
  config.warmup_ratio = 0.5;
  EXPECT_DOUBLE_EQ(learning_rate(config, 1, 8), 5e-5);
}

TEST(WeightDecay, SparesNormsAndBiases) {
  for (const char* name : {"model.layers.0.input_layernorm.weight", "model.norm.weight", "norm.weight",
                           "model.layers.3.self_attn.q_norm.weight", "model.layers.0.self_attn.q_proj.bias",
                           "decoder.final_RMSNorm.weight"}) {
    EXPECT_FALSE(weight_decay_applies(name)) << name;
  }
  for (const char* name : {"model.embed_tokens.weight", "model.layers.0.mlp.up_proj.weight", "lm_head.weight",
                           "model.layers.0.self_attn.q_proj.lora_A.weight", "model.normal.weight"}) {
    EXPECT_TRUE(weight_decay_applies(name)) << name;
  }
}

}  // namespace
}  // namespace coxswain
