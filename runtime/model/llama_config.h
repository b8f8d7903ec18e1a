// What config.json says of a model of the Llama family. Torch-free.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "contract/result.h"

namespace coxswain {

// Rotary position embedding. `llama3` stretches low frequencies for a longer context than the model was
// trained on.
struct RopeConfig {
  double theta = 10000.0;
  bool llama3 = false;
  double factor = 1.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  double original_max_positions = 8192;
};

struct LlamaConfig {
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_size = 0;
  int64_t max_positions = 2048;
  double rms_norm_eps = 1e-6;
  bool tied = false;
  bool attention_bias = false;
  bool mlp_bias = false;
  RopeConfig rope;
};

// `path` is for messages. Reads what transformers 4 (rope_theta, rope_scaling) and 5 (rope_parameters) write.
Result<LlamaConfig> parse_llama_config(const nlohmann::json& config, const std::string& path);

}  // namespace coxswain
