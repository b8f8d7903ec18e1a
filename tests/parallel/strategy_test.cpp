// Every way to split one training run gives the run of one rank.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>

#include "runtime/parallel/make_strategy.h"
#include "tests/parallel/ranks.h"
#include "tests/parallel/tiny_model.h"

namespace coxswain {
namespace {

using testing::TinyModel;
using testing::TinyOptions;
using testing::train;
using testing::TrainOptions;
using testing::TrainResult;

double relative_difference(const torch::Tensor& a, const torch::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

void expect_close(const std::map<std::string, torch::Tensor>& got,
                  const std::map<std::string, torch::Tensor>& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, tensor] : want) {
    ASSERT_TRUE(got.contains(name)) << name;
    ASSERT_EQ(got.at(name).sizes(), tensor.sizes()) << name;
    EXPECT_LT(relative_difference(got.at(name), tensor), tolerance) << name;
  }
}

void expect_same_run(const TrainResult& got, const TrainResult& want) {
  expect_close(got.first_gradients, want.first_gradients, 2e-6);
  // Adam divides tiny gradients by their own size, which turns their last bits into visible ones.
  expect_close(got.parameters, want.parameters, 2e-5);
  ASSERT_EQ(got.losses.size(), want.losses.size());
  for (size_t step = 0; step < want.losses.size(); ++step) {
    EXPECT_NEAR(got.losses[step], want.losses[step], 1e-5 * want.losses[step]) << "step " << step;
    EXPECT_NEAR(got.norms[step], want.norms[step], 1e-4 * want.norms[step]) << "step " << step;
  }
  EXPECT_LT(want.losses.back(), want.losses.front());
}

TinyOptions model_named(const std::string& name) {
  TinyOptions model;
  model.tied = name != "untied";
  model.adapters = name == "adapters";
  return model;
}

const TrainResult& alone(const std::string& model) {
  static std::map<std::string, TrainResult> results;
  if (!results.contains(model)) {
    results[model] = train(model_named(model), {});
  }
  return results[model];
}

using Split = std::tuple<DistributedBackend, int, int, bool, const char*>;

class SameRun : public ::testing::TestWithParam<Split> {};

TEST_P(SameRun, AsOneRank) {
  TrainOptions options;
  const char* model = nullptr;
  std::tie(options.backend, options.ranks, options.accumulation, options.recompute, model) = GetParam();
  expect_same_run(train(model_named(model), options), alone(model));
}

std::string split_name(const ::testing::TestParamInfo<Split>& info) {
  const auto& [backend, ranks, accumulation, recompute, model] = info.param;
  const std::string name = ranks == 1 ? "Single" : backend == DistributedBackend::kZero3 ? "Zero3" : "Ddp";
  return name + std::to_string(ranks) + "Accumulate" + std::to_string(accumulation) +
         (recompute ? "Recompute" : "") + "_" + model;
}

const auto kModels = ::testing::Values("tied", "untied", "adapters");
INSTANTIATE_TEST_SUITE_P(OneRank, SameRun,
                         ::testing::Combine(::testing::Values(DistributedBackend::kZero3),
                                            ::testing::Values(1), ::testing::Values(1, 3), ::testing::Bool(),
                                            kModels),
                         split_name);
INSTANTIATE_TEST_SUITE_P(
    SeveralRanks, SameRun,
    ::testing::Combine(::testing::Values(DistributedBackend::kDdp, DistributedBackend::kZero3),
                       ::testing::Values(2, 3), ::testing::Values(1, 2), ::testing::Bool(), kModels),
    split_name);

TEST(Repeat, GivesTheSameBits) {
  TrainOptions options;
  options.ranks = 3;
  for (const auto backend : {DistributedBackend::kDdp, DistributedBackend::kZero3}) {
    options.backend = backend;
    const TrainResult first = train({}, options);
    const TrainResult second = train({}, options);
    EXPECT_EQ(first.losses, second.losses);
    for (const auto& [name, tensor] : first.parameters) {
      EXPECT_TRUE(torch::equal(second.parameters.at(name), tensor)) << name;
    }
  }
}

TEST(Recompute, DrawsTheSameDropoutAgain) {
  TinyOptions model;
  model.dropout = 0.5;
  TrainOptions options;
  torch::manual_seed(3);
  const TrainResult kept = train(model, options);
  options.recompute = true;
  torch::manual_seed(3);
  const TrainResult again = train(model, options);
  expect_same_run(again, kept);
}

TEST(Zero3, ForwardWithoutGradients) {
  const torch::Tensor ids = torch::arange(20, torch::kInt64);
  double alone = 0;
  for (const int ranks : {1, 2}) {
    testing::run_ranks(ranks, [&](const std::shared_ptr<ProcessGroup>& group) {
      TinyModel model({});
      const auto strategy = make_strategy(DistributedBackend::kZero3, group, model.parts());
      const torch::NoGradGuard no_grad;
      const torch::Tensor loss = model.loss_sum(ids, ids, strategy->runner(), true);
      EXPECT_FALSE(loss.requires_grad());
      if (ranks == 1) {
        alone = loss.item<double>();
      }
      EXPECT_EQ(loss.item<double>(), alone);
    });
  }
}

TEST(FullParameters, AreTheModelsOnRankZeroOnly) {
  TinyOptions options;
  options.adapters = true;
  std::map<std::string, torch::Tensor> want;
  for (const auto& [name, tensor] : TinyModel(options).parts().parameters) {
    want[name] = tensor.detach().clone();
  }
  for (const auto backend : {DistributedBackend::kDdp, DistributedBackend::kZero3}) {
    testing::run_ranks(2, [&](const std::shared_ptr<ProcessGroup>& group) {
      TinyModel model(options);
      const auto strategy = make_strategy(backend, group, model.parts());
      const auto all = strategy->full_parameters(false);
      const auto trained = strategy->full_parameters(true);
      if (group->rank() != 0) {
        EXPECT_TRUE(all.empty());
        return;
      }
      ASSERT_EQ(all.size(), want.size());
      EXPECT_EQ(trained.size(), 6U);
      for (const auto& [name, tensor] : all) {
        EXPECT_TRUE(torch::equal(tensor, want.at(name))) << name;
      }
    });
  }
}

TEST(MakeStrategy, RefusesUnitsThatDontMatchTheParameters) {
  const auto group = *ProcessGroup::connect({});
  TinyModel model({});
  ModelParameters missing = model.parts();
  missing.parameters.pop_back();
  EXPECT_THROW(make_strategy(DistributedBackend::kNone, group, missing), std::invalid_argument);
  ModelParameters unlisted = model.parts();
  unlisted.units.pop_back();
  EXPECT_THROW(make_strategy(DistributedBackend::kNone, group, unlisted), std::invalid_argument);
}

}  // namespace
}  // namespace coxswain
