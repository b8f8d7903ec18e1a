#include "operator/manager/config_check.h"

#include <gmock/gmock.h>

#include <cstdlib>

namespace coxswain {
namespace {

using ::testing::HasSubstr;

TrainingJobSpec spec_with(const Json& params, const Json& env = Json::array()) {
  TrainingJobSpec spec;
  spec.config = {{"task", "llm-sft"},
                 {"base_model", "/models/m"},
                 {"project_name", "p"},
                 {"data", {{"path", "/data/d"}}},
                 {"params", params}};
  spec.env = env;
  return spec;
}

std::string refusal(const TrainingJobSpec& spec) {
  return check_config_of(spec).value_or("");
}

TEST(ConfigCheck, AGoodConfigHasNothingToSay) {
  EXPECT_EQ(refusal(spec_with({{"lr", 1e-4}})), "");
}

TEST(ConfigCheck, ABadOneIsRefusedInTheRuntimesWords) {
  EXPECT_THAT(refusal(spec_with({{"learning_rat", 1}})), HasSubstr("learning_rat"));
  EXPECT_THAT(refusal(spec_with({{"batch_size", "many"}})), HasSubstr("many"));
}

TEST(ConfigCheck, NamesThatTheJobWritesOutAreReplaced) {
  const Json params = {{"batch_size", "${BATCH}"}};
  EXPECT_EQ(refusal(spec_with(params, {{{"name", "BATCH"}, {"value", "4"}}})), "");
  EXPECT_THAT(refusal(spec_with(params, {{{"name", "BATCH"}, {"value", "four"}}})), HasSubstr("four"));
}

// Secrets, config maps, the image's own variables: only the pod knows.
TEST(ConfigCheck, WhatOnlyThePodKnowsIsLeftToTheRuntime) {
  const Json from_secret = {
      {{"name", "BATCH"}, {"valueFrom", {{"secretKeyRef", {{"name", "s"}, {"key", "k"}}}}}}};
  const Json from_other = {{{"name", "BATCH"}, {"value", "$(OTHER)"}}};
  for (const Json& env : {Json::array(), from_secret, from_other}) {
    EXPECT_EQ(refusal(spec_with({{"batch_size", "${BATCH}"}}, env)), "") << env;
  }
}

TEST(ConfigCheck, TheOperatorsOwnEnvironmentIsNotLookedAt) {
  setenv("COXSWAIN_TEST_BATCH", "nonsense", 1);
  EXPECT_EQ(refusal(spec_with({{"batch_size", "${COXSWAIN_TEST_BATCH}"}})), "");
  unsetenv("COXSWAIN_TEST_BATCH");
}

}  // namespace
}  // namespace coxswain
