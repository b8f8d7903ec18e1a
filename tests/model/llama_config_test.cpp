#include "runtime/model/llama_config.h"

#include <gmock/gmock.h>

namespace coxswain {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json good() {
  return json::parse(R"({"model_type": "llama", "vocab_size": 320, "hidden_size": 32, "intermediate_size": 80,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-5,
    "max_position_embeddings": 128, "hidden_act": "silu"})");
}

json llama3_rope() {
  return json::parse(R"({"factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192, "rope_type": "llama3"})");
}

TEST(LlamaConfig, DefaultsAreTransformers) {
  const auto config = parse_llama_config(good(), "c");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->head_size, 8);
  EXPECT_DOUBLE_EQ(config->rope.theta, 10000.0);
  EXPECT_FALSE(config->tied || config->attention_bias || config->mlp_bias || config->rope.llama3);
  json no_kv = good();
  no_kv.erase("num_key_value_heads");
  EXPECT_EQ(parse_llama_config(no_kv, "c")->kv_heads, 4);
}

TEST(LlamaConfig, ReadsRopeOfBothGenerations) {
  json four = good();
  four["rope_theta"] = 500000.0;
  four["rope_scaling"] = llama3_rope();
  json five = good();
  five["rope_parameters"] = llama3_rope();
  five["rope_parameters"]["rope_theta"] = 500000.0;
  for (const json& config : {four, five}) {
    const auto parsed = parse_llama_config(config, "c");
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_TRUE(parsed->rope.llama3);
    EXPECT_DOUBLE_EQ(parsed->rope.theta, 500000.0);
    EXPECT_DOUBLE_EQ(parsed->rope.factor, 32.0);
    EXPECT_DOUBLE_EQ(parsed->rope.original_max_positions, 8192);
  }
  json nothing = good();
  nothing["rope_scaling"] = nullptr;
  EXPECT_TRUE(parse_llama_config(nothing, "c"));
}

TEST(LlamaConfig, RefusesWhatItCannotDo) {
  const std::vector<std::tuple<const char*, json, const char*>> cases = {
      {"hidden_act", "gelu", "hidden_act is 'gelu', which is not supported (silu)"},
      {"rope_scaling",
       {{"rope_type", "yarn"}},
       "rope_type is 'yarn', which is not supported (default, llama3)"},
      {"rope_scaling", {{"type", "linear"}}, "rope_type is 'linear'"},
      {"rope_scaling", {{"rope_type", "llama3"}}, "factor is missing"},
      {"rope_scaling", 3, "rope_scaling must be an object"},
      {"rope_theta", -1, "rope_theta must be a number above 0"},
      {"hidden_size", nullptr, "hidden_size must be a whole number above 0"},
      {"hidden_size", 33, "hidden_size must be a multiple of num_attention_heads"},
      {"num_key_value_heads", 3, "must be a multiple of num_key_value_heads (3)"},
      {"num_hidden_layers", "two", "num_hidden_layers must be a whole number"},
      {"vocab_size", 0, "vocab_size must be a whole number above 0"},
      {"head_dim", 7, "head_dim is 7, but must be even"},
      {"tie_word_embeddings", "yes", "tie_word_embeddings must be true or false"},
  };
  for (const auto& [name, value, says] : cases) {
    json config = good();
    config[name] = value;
    const auto parsed = parse_llama_config(config, "m/config.json");
    ASSERT_FALSE(parsed) << name;
    EXPECT_EQ(parsed.error().code, contract::ExitCode::kBadInput);
    EXPECT_THAT(parsed.error().message, HasSubstr(says));
    EXPECT_THAT(parsed.error().message, testing::StartsWith("m/config.json: "));
  }
}

}  // namespace
}  // namespace coxswain
