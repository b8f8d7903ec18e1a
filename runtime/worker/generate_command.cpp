#include "runtime/worker/generate_command.h"

#include <torch/torch.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/checkpoint/commit.h"
#include "runtime/config/train_config.h"
#include "runtime/model/generate.h"
#include "runtime/model/lora.h"
#include "runtime/model/registry.h"
#include "runtime/tokenizer/chat_template.h"
#include "runtime/tokenizer/tokenizer.h"

namespace coxswain {
namespace {

Result<LoraConfig> read_adapter_config(const std::filesystem::path& folder) {
  const auto file = folder / "adapter_config.json";
  auto text = read_text(file);
  if (!text) return bad_input(text.error().message);
  try {
    const auto json = nlohmann::json::parse(*text);
    LoraConfig config;
    config.rank = json.at("r");
    config.alpha = json.at("lora_alpha");
    config.dropout = 0;
    const auto& targets = json.at("target_modules");
    config.target_modules =
        targets.is_string() ? std::vector<std::string>{targets} : targets.get<std::vector<std::string>>();
    return config;
  } catch (const nlohmann::json::exception& error) {
    return bad_input("Cannot read " + file.string() + " as an adapter's configuration: " + error.what() +
                     ".");
  }
}

Result<void> apply_adapter(CausalLM& model, const std::string& folder) {
  auto config = read_adapter_config(folder);
  if (!config) return tl::unexpected(config.error());
  if (auto applied = apply_lora(model, *config, 0); !applied) return applied;
  return load_adapter(model, folder);
}

bool has_chat_template(const std::filesystem::path& folder) {
  if (std::filesystem::exists(folder / "chat_template.jinja")) return true;
  std::ifstream file(folder / "tokenizer_config.json");
  const auto config = nlohmann::json::parse(file, nullptr, false);
  return config.is_object() && config.contains("chat_template");
}

// No template is no failure: a base model goes on from the text.
Result<std::vector<int64_t>> encode_prompt(const GenerateOptions& options, const Tokenizer& tokenizer) {
  if (!has_chat_template(options.model_folder)) return tokenizer.encode(options.prompt, true);
  auto chat = ChatTemplate::load(options.model_folder, tokenizer.special_tokens().by_name);
  if (!chat) return tl::unexpected(chat.error());
  auto messages = nlohmann::json::array();
  if (!options.system_prompt.empty())
    messages.push_back({{"role", "system"}, {"content", options.system_prompt}});
  messages.push_back({{"role", "user"}, {"content", options.prompt}});
  auto rendered = chat->render(messages.dump(), true);
  if (!rendered) return tl::unexpected(rendered.error());
  return tokenizer.encode(rendered->text, false);
}

}  // namespace

Result<std::string> generate_answer(const GenerateOptions& options) {
  auto tokenizer = Tokenizer::load(options.model_folder);
  if (!tokenizer) return tl::unexpected(tokenizer.error());
  auto loaded = load_model(options.model_folder);
  if (!loaded) return tl::unexpected(loaded.error());
  if (!options.adapter_folder.empty()) {
    if (auto applied = apply_adapter(*loaded->model, options.adapter_folder); !applied) {
      return tl::unexpected(applied.error());
    }
  }
  auto ids = encode_prompt(options, *tokenizer);
  if (!ids) return tl::unexpected(ids.error());
  if (ids->empty()) return bad_input("--prompt: it is empty; give some text to answer.");
  torch::NoGradGuard no_grad;
  const auto answer = generate_greedy(*loaded->model, *ids, options.max_new_tokens, loaded->eos_ids);
  return tokenizer->decode(answer, true);
}

}  // namespace coxswain
