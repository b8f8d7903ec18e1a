#include "runtime/data/model_limits.h"

#include <algorithm>

#include "runtime/tokenizer/model_file.h"

namespace coxswain {
namespace {

constexpr int64_t kFallbackMaxLength = 2048;
constexpr int64_t kDefaultBlock = 1024;

std::optional<int64_t> find_count(const nlohmann::json& config, std::initializer_list<const char*> names) {
  for (const nlohmann::json& part : {config.value("text_config", nlohmann::json()), config}) {
    for (const char* name : names) {
      if (part.is_object() && part.contains(name) && part[name].is_number_integer() && part[name] > 0) {
        return part[name].get<int64_t>();
      }
    }
  }
  return std::nullopt;
}

}  // namespace

Result<ModelLimits> read_model_limits(const std::filesystem::path& model_folder,
                                      std::optional<int64_t> model_max_length) {
  const auto path = model_folder / "config.json";
  if (std::error_code error; !std::filesystem::exists(path, error)) {
    return bad_input("There is no " + path.string() +
                     "; base_model must be a local model folder with a config.json.");
  }
  auto config = read_model_json(path);
  if (!config) return tl::unexpected(config.error());
  auto vocabulary = find_count(*config, {"vocab_size"});
  if (!vocabulary) return bad_input(path.string() + " must say vocab_size, a number above 0.");
  auto configured = find_count(*config, {"max_position_embeddings", "n_positions"});
  return ModelLimits{*vocabulary, model_max_length.value_or(configured.value_or(kFallbackMaxLength))};
}

BlockSize effective_block_size(int64_t block_size, int64_t max_length) {
  if (block_size < 0) return {std::min(max_length, kDefaultBlock), std::nullopt};
  if (block_size <= max_length) return {block_size, std::nullopt};
  return {max_length, "block_size " + std::to_string(block_size) + " is more than the model's maximum of " +
                          std::to_string(max_length) + " tokens; " + std::to_string(max_length) +
                          " is used."};
}

}  // namespace coxswain
