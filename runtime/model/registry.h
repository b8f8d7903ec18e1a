// From an HF model folder to a model and back. The table of architectures is in registry.cpp.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "contract/result.h"
#include "runtime/model/causal_lm.h"
#include "runtime/model/safetensors.h"

namespace coxswain {

// The values of config.json's model_type that are supported.
std::vector<std::string> supported_model_types();

struct LoadedModel {
  std::shared_ptr<CausalLM> model;
  nlohmann::json config;             // config.json
  std::vector<int64_t> eos_ids;      // of generation_config.json, else of config.json; may be empty
  std::vector<std::string> notices;  // one sentence each: tensors in the files that the model has no use for
};

// The architecture with parameters of the right shapes in fp32 and no defined values.
Result<std::shared_ptr<CausalLM>> make_model(const nlohmann::json& config,
                                             const std::string& path_for_messages);

// config.json and the weights. Parameters alias the mapped files (see safetensors.h) and require gradients.
Result<LoadedModel> load_model(const std::string& folder);

// Only the weights, into a model of the right shape: parameters by HF name; a missing tensor or a shape that
// isn't config.json's is a kBadInput failure that names it. Returns notices.
Result<std::vector<std::string>> load_weights(CausalLM& model, const SafetensorsReader& weights,
                                              const std::string& path_for_messages);

// Writes a folder that transformers loads: `weights` (HF names, fp32; a tied head left out), config.json
// (with the dtype of the weights), and of `base_folder` generation_config.json and the tokenizer's files
// where they are.
Result<void> save_model_folder(const std::string& folder, const std::string& base_folder,
                               const TensorMap& weights);

// Only the tokenizer's files of that list (tokenizer.json, tokenizer_config.json, chat_template.jinja …).
Result<void> copy_tokenizer_files(const std::string& folder, const std::string& base_folder);

}  // namespace coxswain
