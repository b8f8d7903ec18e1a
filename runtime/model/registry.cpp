#include "runtime/model/registry.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "runtime/model/durable_file.h"
#include "runtime/model/llama.h"

namespace coxswain {
namespace {

using nlohmann::json;

struct Architecture {
  const char* model_type;
  Result<std::shared_ptr<CausalLM>> (*make)(const json& config, const std::string& path);
};

constexpr Architecture kArchitectures[] = {
    {"llama",
     [](const json& config, const std::string& path) -> Result<std::shared_ptr<CausalLM>> {
       return parse_llama_config(config, path).map(make_llama);
     }},
};

constexpr const char* kTokenizerFiles[] = {"tokenizer.json",      "tokenizer_config.json",
                                           "chat_template.jinja", "special_tokens_map.json",
                                           "tokenizer.model",     "vocab.json",
                                           "merges.txt",          "added_tokens.json"};

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : between) + word;
  return out;
}

std::string shape_text(at::IntArrayRef shape) {
  std::vector<std::string> sizes;
  for (int64_t size : shape) sizes.push_back(std::to_string(size));
  return std::string("[")
      .append(joined(sizes, ", "))
      .append("]");  // operator+: a false alarm of g++ 12 at -O3
}

Result<json> read_json_object(const std::string& path) {
  std::ifstream in(path);
  if (!in) return bad_input(path + ": is not there or can't be read.");
  json object = json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return bad_input(path + ": is not a JSON object.");
  return object;
}

std::vector<int64_t> read_eos_ids(const json& config) {
  std::vector<int64_t> ids;
  if (!config.contains("eos_token_id")) return ids;
  const json& value = config["eos_token_id"];
  for (const json& id : value.is_array() ? value : json::array({value})) {
    if (id.is_number_integer()) ids.push_back(id.get<int64_t>());
  }
  return ids;
}

std::vector<int64_t> find_eos_ids(const std::string& folder, const json& config) {
  const auto generation =
      read_json_object((std::filesystem::path(folder) / "generation_config.json").string());
  const auto ids = generation ? read_eos_ids(*generation) : std::vector<int64_t>{};
  return ids.empty() ? read_eos_ids(config) : ids;
}

// The name under which a parameter is stored: a tied weight may be there under the head's name only.
std::string stored_name(const CausalLM& model, const SafetensorsReader& weights, const std::string& name) {
  if (model.tied() && !weights.has(name) && name == "model.embed_tokens.weight" &&
      weights.has("lm_head.weight")) {
    return "lm_head.weight";
  }
  return name;
}

std::vector<std::string> unused_notice(const CausalLM& model, const SafetensorsReader& weights,
                                       const std::string& path) {
  const auto parameters = model.named_parameters();
  std::vector<std::string> unused;
  for (const auto& [name, entry] : weights.entries()) {
    const bool derived = name.ends_with("rotary_emb.inv_freq") || (model.tied() && name == "lm_head.weight");
    if (!derived && !parameters.contains(name)) unused.push_back(name);
  }
  if (unused.empty()) return {};
  const size_t count = unused.size();
  unused.resize(std::min<size_t>(count, 3));
  return {path + ": " + std::to_string(count) + " tensors are not the model's and are left out (" +
          joined(unused, ", ") + (count > 3 ? ", …" : "") + ")."};
}

Result<void> copy_files(const std::string& to, const std::string& from,
                        const std::vector<std::string>& names) {
  for (const auto& name : names) {
    const auto source = std::filesystem::path(from) / name, target = std::filesystem::path(to) / name;
    std::error_code error;
    if (!std::filesystem::is_regular_file(source) || std::filesystem::equivalent(source, target, error))
      continue;
    std::ifstream in(source, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    if (!in) return fail(contract::ExitCode::kStorage, source.string() + ": could not be read.");
    if (auto done = write_file_durably(target.string(), text); !done) return done;
  }
  return {};
}

}  // namespace

std::vector<std::string> supported_model_types() {
  std::vector<std::string> types;
  for (const auto& architecture : kArchitectures) types.push_back(architecture.model_type);
  return types;
}

Result<std::shared_ptr<CausalLM>> make_model(const json& config, const std::string& path) {
  const bool named = config.contains("model_type") && config["model_type"].is_string();
  const std::string type = named ? config["model_type"].get<std::string>() : "";
  for (const auto& architecture : kArchitectures) {
    if (type == architecture.model_type) return architecture.make(config, path);
  }
  return bad_input(path + ": model_type " + (named ? "'" + type + "' is not supported" : "is missing") +
                   "; supported: " + joined(supported_model_types(), ", ") + ".");
}

Result<LoadedModel> load_model(const std::string& folder) {
  if (!std::filesystem::is_directory(folder)) return bad_input(folder + ": there is no such model folder.");
  const std::string config_path = (std::filesystem::path(folder) / "config.json").string();
  auto config = read_json_object(config_path);
  if (!config) return tl::unexpected(config.error());
  auto model = make_model(*config, config_path);
  if (!model) return tl::unexpected(model.error());
  auto weights = SafetensorsReader::open_folder(folder);
  if (!weights) return tl::unexpected(weights.error());
  auto notices = load_weights(**model, *weights, folder);
  if (!notices) return tl::unexpected(notices.error());
  return LoadedModel{*model, *config, find_eos_ids(folder, *config), *notices};
}

Result<std::vector<std::string>> load_weights(CausalLM& model, const SafetensorsReader& weights,
                                              const std::string& path) {
  for (const auto& parameter : model.named_parameters()) {
    const std::string name = stored_name(model, weights, parameter.key());
    auto found = weights.entries().find(name);
    if (found == weights.entries().end()) {
      return bad_input(path + ": tensor '" + parameter.key() +
                       "' is missing from the weights, though config.json asks for it.");
    }
    if (at::IntArrayRef(found->second.shape) != parameter.value().sizes()) {
      return bad_input(path + ": tensor '" + name + "' has shape " + shape_text(found->second.shape) +
                       ", but config.json asks for " + shape_text(parameter.value().sizes()) + ".");
    }
    auto tensor = weights.tensor_fp32(name);
    if (!tensor) return tl::unexpected(tensor.error());
    torch::Tensor handle = parameter.value();
    handle.set_data(*tensor);
  }
  return unused_notice(model, weights, path);
}

Result<void> save_model_folder(const std::string& folder, const std::string& base_folder,
                               const TensorMap& weights) {
  auto config = read_json_object((std::filesystem::path(base_folder) / "config.json").string());
  if (!config) return tl::unexpected(config.error());
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return fail(contract::ExitCode::kStorage, folder + ": could not be made: " + error.message() + ".");
  if (auto done = write_model_weights(folder, weights); !done) return done;
  (*config)[config->contains("torch_dtype") ? "torch_dtype" : "dtype"] = "float32";
  const std::string path = (std::filesystem::path(folder) / "config.json").string();
  if (auto done = write_file_durably(path, config->dump(2) + "\n"); !done) return done;
  if (auto done = copy_files(folder, base_folder, {"generation_config.json"}); !done) return done;
  return copy_tokenizer_files(folder, base_folder);
}

Result<void> copy_tokenizer_files(const std::string& folder, const std::string& base_folder) {
  return copy_files(folder, base_folder, {std::begin(kTokenizerFiles), std::end(kTokenizerFiles)});
}

}  // namespace coxswain
