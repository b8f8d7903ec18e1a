// Each fused operation against torch's own chain of operations, forward and backward.
#include "runtime/model/fused_ops.h"

#include <gtest/gtest.h>

#include <functional>

#include "runtime/data/batch.h"
#include "runtime/model/head_loss.h"

namespace coxswain {
namespace {

using torch::Tensor;

Tensor leaf(at::IntArrayRef shape) {
  return torch::randn(shape).requires_grad_();
}

void expect_close(const Tensor& a, const Tensor& b, const std::string& what) {
  const double difference = (a - b).abs().max().item<double>();
  EXPECT_LE(difference, 2e-5 * std::max(1.0, b.abs().max().item<double>())) << what;
}

// Outputs and the gradients of all inputs, for a random gradient of the output.
void expect_same(const std::vector<Tensor>& inputs,
                 const std::function<Tensor(const std::vector<Tensor>&)>& ours,
                 const std::function<Tensor(const std::vector<Tensor>&)>& theirs) {
  const Tensor a = ours(inputs), b = theirs(inputs);
  ASSERT_EQ(a.sizes(), b.sizes());
  expect_close(a.detach(), b.detach(), "output");
  const Tensor g = torch::randn_like(b);
  const auto ga = torch::autograd::grad({a}, inputs, {g}), gb = torch::autograd::grad({b}, inputs, {g});
  for (size_t i = 0; i < inputs.size(); ++i)
    expect_close(ga[i], gb[i], "gradient of input " + std::to_string(i));
}

TEST(FusedOps, RmsNorm) {
  torch::manual_seed(1);
  for (const auto& [rows, n] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {3, 7}, {50, 576}, {700, 64}}) {
    expect_same(
        {leaf({rows, n}), leaf({n})}, [](const auto& in) { return rms_norm(in[0], in[1], 1e-5); },
        [](const auto& in) { return in[1] * in[0] * torch::rsqrt(in[0].pow(2).mean(-1, true) + 1e-5); });
  }
}

TEST(FusedOps, RmsNormOfAFrozenWeight) {
  Tensor x = leaf({5, 8});
  rms_norm(x, torch::ones({8}), 1e-5).sum().backward();
  EXPECT_TRUE(x.grad().defined());
}

TEST(FusedOps, SiluMul) {
  torch::manual_seed(2);
  expect_same(
      {leaf({211, 333}), leaf({211, 333})}, [](const auto& in) { return silu_mul(in[0], in[1]); },
      [](const auto& in) { return at::silu(in[0]) * in[1]; });
}

TEST(FusedOps, Rotate) {
  torch::manual_seed(3);
  const Tensor angles = torch::randn({90, 12});
  const Tensor cos = angles.cos(), sin = angles.sin();
  expect_same(
      {leaf({90, 5, 24})}, [&](const auto& in) { return rotate(in[0], cos, sin); },
      [&](const auto& in) {
        const auto halves = in[0].chunk(2, -1);
        const Tensor c = torch::cat({cos, cos}, -1).unsqueeze(1), s = torch::cat({sin, sin}, -1).unsqueeze(1);
        return in[0] * c + torch::cat({-halves[1], halves[0]}, -1) * s;
      });
}

Tensor reference_loss(const Tensor& hidden, const Tensor& weight, const Tensor& targets) {
  namespace F = torch::nn::functional;
  return F::cross_entropy(at::linear(hidden, weight), targets,
                          F::CrossEntropyFuncOptions().ignore_index(kIgnoredLabel).reduction(torch::kSum));
}

TEST(HeadLoss, EqualsCrossEntropyOverSeveralChunks) {
  torch::manual_seed(4);
  // 300 rows of a vocabulary this large don't fit into one chunk.
  const int64_t vocab_size = 150'001;
  Tensor targets = torch::randint(vocab_size, {300}, torch::kLong);
  targets.slice(0, 0, 300, 7) = kIgnoredLabel;
  expect_same(
      {leaf({300, 16}), leaf({vocab_size, 16})},
      [&](const auto& in) { return head_loss(in[0], in[1], targets); },
      [&](const auto& in) { return reference_loss(in[0], in[1], targets); });
}

TEST(HeadLoss, AsksOnlyForTheGradientsThatAreWanted) {
  torch::manual_seed(5);
  const Tensor targets = torch::randint(50, {20}, torch::kLong);
  const Tensor frozen = torch::randn({50, 8});
  expect_same(
      {leaf({20, 8})}, [&](const auto& in) { return head_loss(in[0], frozen, targets); },
      [&](const auto& in) { return reference_loss(in[0], frozen, targets); });
  const torch::NoGradGuard no_grad;
  EXPECT_FALSE(head_loss(leaf({20, 8}), frozen, targets).requires_grad());
}

TEST(HeadLoss, RefusesATargetOutsideTheVocabulary) {
  EXPECT_THROW(head_loss(leaf({1, 8}), leaf({50, 8}), torch::full({1}, 50, torch::kLong)), c10::Error);
}

TEST(HeadLoss, BackwardOnce) {
  Tensor hidden = leaf({4, 8});
  Tensor loss = head_loss(hidden, torch::randn({50, 8}), torch::zeros({4}, torch::kLong));
  loss.backward({}, /*retain_graph=*/true);
  EXPECT_THROW(loss.backward(), c10::Error);
}

}  // namespace
}  // namespace coxswain
