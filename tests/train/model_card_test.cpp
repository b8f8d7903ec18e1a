#include "runtime/train/model_card.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace coxswain {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(ModelCard, SaysWhatWasTrainedAndHowToLoadIt) {
  TrainConfig config;
  config.base_model = "models/tiny";
  config.project_name = "teacher";
  EXPECT_THAT(model_card(config, {}),
              StartsWith("---\nbase_model: models/tiny\nlibrary_name: transformers\n"));
  EXPECT_THAT(model_card(config, {}), Not(HasSubstr("peft")));

  config.peft = true;
  config.lora.merge_adapter = false;
  EXPECT_THAT(model_card(config, {}), HasSubstr("library_name: peft"));
  EXPECT_THAT(model_card(config, {}), HasSubstr("PeftModel.from_pretrained"));
}

TEST(TrainingParams, HoldsTheSettledValuesUnderTheUsersNames) {
  TrainConfig config;
  config.optimizer.learning_rate = 1e-4;
  config.peft = true;
  const auto json = training_params(config);
  EXPECT_EQ(json.at("lr"), 1e-4);
  EXPECT_EQ(json.at("lora_r"), 16);
  EXPECT_EQ(json.at("save_strategy"), "epoch");
}

}  // namespace
}  // namespace coxswain
