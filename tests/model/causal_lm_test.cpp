#include "runtime/model/causal_lm.h"

#include <gmock/gmock.h>

#include <set>

#include "runtime/model/llama.h"
#include "runtime/model/lora.h"

namespace coxswain {
namespace {

using testing::ElementsAre;

std::shared_ptr<CausalLM> tiny(bool tied) {
  LlamaConfig config;
  config.vocab_size = 50;
  config.hidden_size = 16;
  config.intermediate_size = 24;
  config.layers = 2;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_size = 4;
  config.tied = tied;
  auto model = make_llama(config);
  const torch::NoGradGuard no_grad;
  torch::manual_seed(1);
  for (auto& parameter : model->parameters()) parameter.normal_(0, 0.3);
  return model;
}

Batch batch_of(std::vector<std::vector<int64_t>> segments, int64_t length) {
  Batch batch;
  batch.rows = static_cast<int64_t>(segments.size());
  batch.length = length;
  batch.segments = segments;
  for (const auto& lengths : segments) {
    int64_t sum = 0;
    for (int64_t l : lengths) sum += l;
    batch.lengths.push_back(sum);
    for (int64_t t = 0; t < length; ++t) {
      batch.ids.push_back(t < sum ? 10 + t : 0);
      batch.labels.push_back(t < sum ? 10 + t : kIgnoredLabel);
    }
  }
  return batch;
}

template <typename T>
std::vector<T> values(const torch::Tensor& tensor) {
  const torch::Tensor flat = tensor.contiguous();
  return {flat.data_ptr<T>(), flat.data_ptr<T>() + flat.numel()};
}

TEST(TokenBatch, LeavesPaddingOutAndShiftsWithinSegments) {
  const TokenBatch batch = to_token_batch(batch_of({{2, 1}, {4}}, 5));
  EXPECT_THAT(batch.segments, ElementsAre(2, 1, 4));
  EXPECT_THAT(values<int64_t>(batch.ids), ElementsAre(10, 11, 12, 10, 11, 12, 13));
  EXPECT_THAT(values<int64_t>(batch.positions), ElementsAre(0, 1, 0, 0, 1, 2, 3));
  EXPECT_THAT(values<int64_t>(batch.targets), ElementsAre(11, -100, -100, 11, 12, 13, -100));
}

TEST(CausalLM, EveryParameterIsInOneUnit) {
  for (bool tied : {true, false}) {
    for (bool lora : {true, false}) {
      auto model = tiny(tied);
      if (lora) {
        ASSERT_TRUE(apply_lora(*model, {}, 1));
      }
      const auto units = model->units();
      ASSERT_EQ(units.size(), 4u);
      EXPECT_EQ(units[0].name, "embed");
      EXPECT_EQ(units[2].name, "layers.1");
      EXPECT_EQ(units[model->head_unit()].name, "head");
      std::multiset<std::string> in_units, all;
      for (const auto& unit : units)
        in_units.insert(unit.parameter_names.begin(), unit.parameter_names.end());
      for (const auto& parameter : model->named_parameters()) all.insert(parameter.key());
      EXPECT_EQ(in_units, all);
      EXPECT_EQ(in_units.count("lm_head.weight"), tied ? 0u : 1u);
      EXPECT_EQ(in_units.count("model.layers.1.mlp.up_proj.lora_A.weight"), lora ? 1u : 0u);
    }
  }
}

// What a sharded strategy does at its worst: a unit's parameters are real only while the unit runs.
class StrictRunner : public UnitRunner {
 public:
  explicit StrictRunner(CausalLM& model) : model_(model), units_(model.units()) {
    for (const auto& parameter : model.named_parameters()) {
      kept_[parameter.key()] = parameter.value().detach().clone();
      parameter.value().detach().fill_(NAN);
    }
  }

  torch::Tensor run(const std::vector<size_t>& units, const torch::Tensor& x, bool,
                    const UnitForward& forward) override {
    const torch::NoGradGuard no_grad;
    const auto parameters = model_.named_parameters();
    const auto each = [&](const std::function<void(const std::string&, torch::Tensor)>& action) {
      for (size_t unit : units) {
        for (const auto& name : units_[unit].parameter_names) action(name, parameters[name]);
      }
    };
    each([&](const auto& name, torch::Tensor parameter) { parameter.copy_(kept_.at(name)); });
    torch::Tensor y = forward(x).clone();
    each([](const auto&, torch::Tensor parameter) { parameter.fill_(NAN); });
    return y;
  }

 private:
  CausalLM& model_;
  std::vector<ModelUnit> units_;
  TensorMap kept_;
};

TEST(CausalLM, UsesParametersOnlyInsideTheirUnits) {
  for (bool tied : {true, false}) {
    auto model = tiny(tied);
    const torch::NoGradGuard no_grad;
    const TokenBatch batch = to_token_batch(batch_of({{6, 3}, {7}}, 10));
    DirectRunner direct;
    const double loss = model->loss_sum(batch, direct, false).item<double>();
    const torch::Tensor logits = model->logits(batch, direct);
    StrictRunner strict(*model);
    EXPECT_EQ(model->loss_sum(batch, strict, false).item<double>(), loss);
    EXPECT_TRUE(torch::equal(model->logits(batch, strict), logits));
  }
}

TEST(CausalLM, LossIsTheCrossEntropyOfItsLogits) {
  auto model = tiny(false);
  const TokenBatch batch = to_token_batch(batch_of({{6, 3}, {7}}, 10));
  DirectRunner runner;
  const torch::Tensor log_p = torch::log_softmax(model->logits(batch, runner), 1);
  double expected = 0;
  const auto targets = values<int64_t>(batch.targets);
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] >= 0) expected -= log_p[static_cast<int64_t>(i)][targets[i]].item<double>();
  }
  EXPECT_NEAR(model->loss_sum(batch, runner, false).item<double>(), expected, 1e-4);
}

TEST(Lora, DropoutActsInTrainingOnly) {
  auto model = tiny(true);
  LoraConfig config;
  config.dropout = 0.5;
  ASSERT_TRUE(apply_lora(*model, config, 1));
  const torch::NoGradGuard no_grad;
  for (auto& parameter : model->named_parameters()) {
    if (parameter.key().ends_with("lora_B.weight")) parameter.value().normal_();
  }
  const TokenBatch batch = to_token_batch(batch_of({{9}}, 9));
  DirectRunner runner;
  const auto loss = [&] { return model->loss_sum(batch, runner, false).item<double>(); };
  model->train();
  EXPECT_NE(loss(), loss());
  model->eval();
  EXPECT_EQ(loss(), loss());
}

TEST(Lora, OnlyItsOwnParametersAreTrained) {
  auto model = tiny(true);
  ASSERT_TRUE(apply_lora(*model, {}, 1));
  for (const auto& parameter : model->named_parameters()) {
    EXPECT_EQ(parameter.value().requires_grad(), is_lora_parameter(parameter.key())) << parameter.key();
  }
}

TEST(Lora, RefusesABadConfig) {
  LoraConfig no_rank;
  no_rank.rank = 0;
  LoraConfig no_targets;
  no_targets.target_modules = {};
  LoraConfig head;
  head.target_modules = {"lm_head"};
  LoraConfig part_of_a_name;
  part_of_a_name.target_modules = {"proj"};
  for (const auto& config : {no_rank, no_targets, head, part_of_a_name}) {
    auto model = tiny(false);
    const auto applied = apply_lora(*model, config, 1);
    ASSERT_FALSE(applied);
    EXPECT_EQ(applied.error().code, contract::ExitCode::kBadInput);
    EXPECT_TRUE(model->parameters()[0].requires_grad()) << "a refused config changes nothing";
  }
}

TEST(Lora, MergeTouchesNothingElse) {
  TensorMap parameters = {{"m.q.weight", torch::eye(2)},
                          {"m.q.bias", torch::ones({2})},
                          {"m.q.lora_A.weight", torch::ones({1, 2})},
                          {"m.q.lora_B.weight", torch::full({2, 1}, 3.0)},
                          {"norm.weight", torch::ones({2})}};
  const torch::Tensor base = parameters["m.q.weight"];
  LoraConfig config;
  config.rank = 1;
  config.alpha = 2;
  ASSERT_TRUE(merge_lora(parameters, config));
  ASSERT_EQ(parameters.size(), 3u);
  EXPECT_THAT(values<float>(parameters["m.q.weight"]), ElementsAre(7, 6, 6, 7));
  EXPECT_TRUE(torch::equal(base, torch::eye(2)));
}

}  // namespace
}  // namespace coxswain
