// Values against the formulas in double; derivatives are proved in fused_ops_test.cpp.
#include "runtime/model/row_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace coxswain {
namespace {

TEST(RowKernels, CrossEntropyOfExtremeLogits) {
  for (const float shift : {0.0f, 1e4f, -1e4f}) {
    std::vector<float> logits = {shift + 1, shift - 200, shift + 3, shift};
    const double sum = std::exp(1.0) + std::exp(3.0) + 1;
    EXPECT_NEAR(cross_entropy_row(logits.data(), 4, 1), 200 + std::log(sum), 1e-4);
    EXPECT_NEAR(logits[0], std::exp(1.0) / sum, 1e-6);
    EXPECT_NEAR(logits[1], -1, 1e-6);
    EXPECT_NEAR(logits[2], std::exp(3.0) / sum, 1e-6);
  }
}

TEST(RowKernels, CrossEntropyHandlesMinusInfinity) {
  std::vector<float> logits = {-std::numeric_limits<float>::infinity(), 0, 0};
  EXPECT_NEAR(cross_entropy_row(logits.data(), 3, 1), std::log(2.0), 1e-6);
  EXPECT_EQ(logits[0], 0);
}

TEST(RowKernels, SiluOfExtremeInput) {
  // Long enough for whole vectors: those take another path than the rest of a row.
  const std::vector<float> gate = [] {
    std::vector<float> values;
    for (int i = 0; i < 16; ++i) {
      for (float x : {-1e4f, -90.0f, -1.0f, 0.0f, 1.0f, 90.0f, 1e4f}) values.push_back(x);
    }
    return values;
  }();
  const std::vector<float> up(gate.size(), 2.0f), dy(gate.size(), 1.0f);
  std::vector<float> y(gate.size()), dgate(gate.size()), dup(gate.size());
  const auto n = static_cast<int64_t>(gate.size());
  silu_mul(gate.data(), up.data(), n, y.data());
  silu_mul_backward(gate.data(), up.data(), dy.data(), n, dgate.data(), dup.data());
  for (size_t i = 0; i < gate.size(); ++i) {
    const double x = gate[i], sigmoid = 1 / (1 + std::exp(-x));
    EXPECT_NEAR(y[i], 2 * x * sigmoid, 1e-6 * std::max(1.0, std::abs(x)));
    EXPECT_NEAR(dup[i], x * sigmoid, 1e-6 * std::max(1.0, std::abs(x)));
    EXPECT_NEAR(dgate[i], 2 * sigmoid * (1 + x * (1 - sigmoid)), 1e-6);
  }
}

}  // namespace
}  // namespace coxswain
