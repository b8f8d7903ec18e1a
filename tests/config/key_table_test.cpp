#include "runtime/config/key_table.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "runtime/config/parse.h"

namespace coxswain {
namespace {

TEST(KeyTable, EveryKeyHasOneRow) {
  std::set<std::string> fields;
  std::set<std::string> paths;
  for (const ConfigKey& key : key_table()) {
    EXPECT_TRUE(fields.insert(key.field).second) << key.field;
    EXPECT_TRUE(paths.insert(key.path()).second) << key.path();
    EXPECT_FALSE(key.text.empty()) << key.field;
    EXPECT_EQ(find_key_by_path(key.path()), &key);
  }
}

// The defaults that the table tells people are the ones that a configuration without the key gets.
TEST(KeyTable, SayingTheDefaultChangesNothing) {
  const auto summary = [](const TrainConfig& c) {
    std::ostringstream out;
    out << static_cast<int>(c.trainer) << ' ' << static_cast<int>(c.distributed_backend) << ' '
        << c.ddp_timeout_seconds << ' ' << c.batch_size << ' ' << c.gradient_accumulation << ' ' << c.epochs
        << ' ' << c.max_steps << ' ' << c.block_size << ' ' << c.add_eos_token << c.response_only_loss
        << c.gradient_checkpointing << ' ' << c.seed << ' ' << c.peft << ' ' << c.lora.rank << ' '
        << c.lora.alpha << ' ' << c.lora.dropout << ' ' << c.lora.target_modules.at(0) << ' '
        << c.lora.merge_adapter << ' ' << c.data.train_split << ' ' << c.data.text_column << ' '
        << *c.data.chat_template << ' ' << c.data.shuffle << ' ' << c.optimizer.learning_rate << ' '
        << c.optimizer.weight_decay << ' ' << c.optimizer.adam_beta1 << ' ' << c.optimizer.adam_beta2 << ' '
        << c.optimizer.adam_epsilon << ' ' << c.optimizer.max_grad_norm << ' '
        << static_cast<int>(c.optimizer.schedule) << ' ' << c.optimizer.warmup_ratio << ' '
        << static_cast<int>(c.save.strategy) << ' ' << c.save.steps << ' ' << c.save.total_limit << ' '
        << c.save.resume_from_checkpoint.value_or("-") << ' ' << c.logging.steps << c.logging.tensorboard;
    return out.str();
  };
  const std::string yaml = "base_model: m\nproject_name: p\ndata: {path: d}\n";
  const Result<TrainConfig> plain = parse_train_config(yaml, "c", {}, process_environment());
  ASSERT_TRUE(plain);
  int compared = 0;
  for (const ConfigKey& key : key_table()) {
    if (key.answer != KeyAnswer::kImplemented || key.standard == "required") continue;
    if (key.field == "chat_template" || key.field == "model_max_length")
      continue;  // depend on trainer and model
    const Result<TrainConfig> said =
        parse_train_config(yaml, "c", {key.path() + "=" + key.standard}, process_environment());
    ASSERT_TRUE(said) << said.error().message;
    EXPECT_EQ(summary(*said), summary(*plain)) << key.path();
    ++compared;
  }
  EXPECT_GT(compared, 30);
}

TEST(KeyTable, ADefaultOfAnUnsupportedKeyIsAccepted) {
  for (const ConfigKey& key : key_table())
    for (const std::string& value : key.asks_nothing) {
      const Result<TrainConfig> config =
          parse_train_config("base_model: m\nproject_name: p\ndata: {path: d}\n", "c",
                             {key.path() + "='" + value + "'"}, process_environment());
      EXPECT_TRUE(config) << config.error().message;
    }
}

// After a change of the table: COXSWAIN_UPDATE_DOCS=1 config_test writes the page anew.
TEST(KeyTable, DocsConfigurationIsCurrent) {
  const char* source = std::getenv("COXSWAIN_SOURCE_DIR");
  const std::string path = std::string(source ? source : ".") + "/docs/configuration.md";
  if (std::getenv("COXSWAIN_UPDATE_DOCS")) std::ofstream(path) << configuration_reference();
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_TRUE(text.str() == configuration_reference())
      << path << " is not what the table says; run config_test once with COXSWAIN_UPDATE_DOCS=1";
}

}  // namespace
}  // namespace coxswain
