#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/config/parse.h"

namespace coxswain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Result<ResolvedTrainConfig> parse(std::vector<std::string> extra) {
  std::vector<std::string> arguments = {"--train", "--model",        "m: x", "--data-path",
                                        "d",       "--project-name", "p"};
  arguments.insert(arguments.end(), extra.begin(), extra.end());
  return parse_llm_flags(arguments, [](const std::string&) { return std::nullopt; });
}

std::string error_of(std::vector<std::string> extra) {
  const Result<ResolvedTrainConfig> parsed = parse(std::move(extra));
  if (parsed) return "accepted";
  EXPECT_EQ(parsed.error().code, contract::ExitCode::kBadInput);
  return parsed.error().message;
}

TEST(LlmFlags, FillTheSameConfigurationAsYaml) {
  const Result<ResolvedTrainConfig> parsed = parse({"--trainer",
                                                    "sft",
                                                    "--distributed-backend",
                                                    "deepspeed",
                                                    "--peft",
                                                    "--lr=1e-4",
                                                    "--batch-size",
                                                    "4",
                                                    "--no-merge-adapter",
                                                    "--max_steps",
                                                    "-1",
                                                    "--target-modules",
                                                    "q_proj,v_proj",
                                                    "--text-column",
                                                    "messages",
                                                    "--data-shuffle",
                                                    "false",
                                                    "--no-response-only-loss",
                                                    "--backend",
                                                    "local",
                                                    "--token",
                                                    "hf_secret"});
  ASSERT_TRUE(parsed) << parsed.error().message;
  const TrainConfig& config = parsed->config;
  EXPECT_EQ(config.trainer, Trainer::kSft);
  EXPECT_EQ(config.base_model, "m: x");
  EXPECT_EQ(config.data.path, "d");
  EXPECT_EQ(config.data.text_column, "messages");
  EXPECT_EQ(config.distributed_backend, DistributedBackend::kZero3);
  EXPECT_TRUE(config.peft);
  EXPECT_EQ(config.optimizer.learning_rate, 1e-4);
  EXPECT_EQ(config.batch_size, 4);
  EXPECT_FALSE(config.lora.merge_adapter);
  EXPECT_FALSE(config.data.shuffle);
  EXPECT_FALSE(config.response_only_loss);
  EXPECT_THAT(config.lora.target_modules, ElementsAre("q_proj", "v_proj"));
}

TEST(LlmFlags, TheYamlForWorkersSaysTheSameWithoutTheToken) {
  const Result<ResolvedTrainConfig> parsed =
      parse({"--trainer", "sft", "--peft", "--lr", "1e-4", "--token", "hf_secret", "--no-merge-adapter",
             "--target-modules", "q_proj,v_proj", "--seed", "7"});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_THAT(parsed->yaml, Not(HasSubstr("hf_secret")));
  const Result<TrainConfig> again = parse_train_config(parsed->yaml, "resolved", {}, process_environment());
  ASSERT_TRUE(again) << again.error().message << "\n" << parsed->yaml;
  EXPECT_EQ(again->notices.size(), parsed->config.notices.size());
  EXPECT_EQ(again->base_model, "m: x");
  EXPECT_EQ(again->project_name, "p");
  EXPECT_EQ(again->data.path, "d");
  EXPECT_EQ(again->trainer, Trainer::kSft);
  EXPECT_TRUE(again->peft);
  EXPECT_EQ(again->optimizer.learning_rate, 1e-4);
  EXPECT_EQ(again->seed, 7u);
  EXPECT_FALSE(again->lora.merge_adapter);
  EXPECT_THAT(again->lora.target_modules, ElementsAre("q_proj", "v_proj"));
}

TEST(LlmFlags, RefusalsNameTheFlag) {
  EXPECT_EQ(
      error_of({"--batch-size", "0"}),
      "--batch-size is 0, but must be a whole number from 1 to 1000000; leave it out for the default (2).");
  EXPECT_EQ(error_of({"--batchsize", "1"}), "unknown flag --batchsize; did you mean --batch-size?");
  EXPECT_EQ(error_of({"--lr"}), "--lr needs a value: a number greater than 0.");
  EXPECT_THAT(error_of({"--lr", "--peft"}), HasSubstr("--lr needs a value"));
  EXPECT_THAT(error_of({"stray"}), HasSubstr("'stray' is no flag"));
  EXPECT_THAT(error_of({"--no-lr"}), HasSubstr("unknown flag --no-lr"));
  EXPECT_THAT(error_of({"--push-to-hub"}), HasSubstr("--push-to-hub is true: nothing is uploaded"));
  EXPECT_THAT(error_of({"--inference"}), HasSubstr("only does --train"));
}

TEST(LlmFlags, AskForWhatIsMissing) {
  const auto message = [](std::vector<std::string> arguments) {
    return parse_llm_flags(arguments, process_environment()).error().message;
  };
  EXPECT_THAT(message({"--model", "m"}), HasSubstr("say --train"));
  EXPECT_EQ(message({"--train", "--model", "m", "--project-name", "p"}),
            "coxswain-runtime llm: --data-path is missing; give a .jsonl file, or a folder with "
            "{train_split}.jsonl.");
}

}  // namespace
}  // namespace coxswain
