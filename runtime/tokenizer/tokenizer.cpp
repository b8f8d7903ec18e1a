#include "runtime/tokenizer/tokenizer.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "runtime/tokenizer/ffi.h"
#include "runtime/tokenizer/ffi_text.h"
#include "runtime/tokenizer/model_file.h"

namespace coxswain {
namespace {

using nlohmann::json;

constexpr const char* kNamedTokens[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                        "pad_token", "cls_token", "mask_token"};

// A token is written as a string, or as an object whose `content` is the string.
std::optional<std::string> token_text(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object() && value.contains("content") && value["content"].is_string()) {
    return value["content"].get<std::string>();
  }
  return std::nullopt;
}

struct FolderFiles {
  json tokenizer_config, special_tokens_map, generation_config, config;
};

Result<FolderFiles> read_files(const std::filesystem::path& folder) {
  FolderFiles files;
  const std::pair<const char*, json*> all[] = {{"tokenizer_config.json", &files.tokenizer_config},
                                               {"special_tokens_map.json", &files.special_tokens_map},
                                               {"generation_config.json", &files.generation_config},
                                               {"config.json", &files.config}};
  for (const auto& [name, target] : all) {
    auto content = read_model_json(folder / name);
    if (!content) return tl::unexpected(content.error());
    *target = std::move(*content);
  }
  return files;
}

// special_tokens_map.json counts only beside a tokenizer_config.json without added_tokens_decoder, and then
// wins: so transformers reads the two.
std::map<std::string, std::string> named_tokens(const FolderFiles& files) {
  std::map<std::string, std::string> tokens;
  auto take_from = [&](const json& source) {
    for (const char* name : kNamedTokens) {
      if (!source.contains(name)) continue;
      if (auto text = token_text(source[name])) tokens[name] = *text;
    }
  };
  take_from(files.tokenizer_config);
  if (!files.tokenizer_config.contains("added_tokens_decoder")) take_from(files.special_tokens_map);
  return tokens;
}

std::vector<int64_t> numbered_ids(const FolderFiles& files, const char* key) {
  for (const json* source : {&files.generation_config, &files.config}) {
    if (!source->contains(key)) continue;
    const json& value = (*source)[key];
    if (value.is_number_integer()) return {value.get<int64_t>()};
    std::vector<int64_t> ids;
    if (value.is_array()) {
      for (const json& id : value) {
        if (id.is_number_integer()) ids.push_back(id.get<int64_t>());
      }
    }
    if (!ids.empty()) return ids;
  }
  return {};
}

SpecialTokens resolve(const Tokenizer& tokenizer, const FolderFiles& files,
                      std::map<std::string, std::string> tokens) {
  SpecialTokens special;
  auto id_of = [&](const char* name, const char* key) -> std::optional<int64_t> {
    if (auto found = tokens.find(name); found != tokens.end()) {
      if (auto id = tokenizer.token_to_id(found->second)) return id;
    }
    auto ids = numbered_ids(files, key);
    return ids.empty() ? std::nullopt : std::optional(ids.front());
  };
  special.bos_id = id_of("bos_token", "bos_token_id");
  special.eos_id = id_of("eos_token", "eos_token_id");
  special.pad_id = id_of("pad_token", "pad_token_id");
  special.stop_ids = numbered_ids(files, "eos_token_id");
  if (special.eos_id && std::ranges::find(special.stop_ids, *special.eos_id) == special.stop_ids.end()) {
    special.stop_ids.insert(special.stop_ids.begin(), *special.eos_id);
  }
  special.by_name = std::move(tokens);
  return special;
}

}  // namespace

void Tokenizer::Free::operator()(coxswain_tokenizer* handle) const {
  coxswain_tokenizer_free(handle);
}

Tokenizer::Tokenizer(coxswain_tokenizer* handle) : handle_(handle) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::load(const std::filesystem::path& model_folder) {
  const auto path = model_folder / "tokenizer.json";
  auto content = read_model_file(path);
  if (!content) return tl::unexpected(content.error());
  if (!*content) {
    return bad_input("There is no " + path.string() +
                     "; base_model must be a model folder with a tokenizer.json.");
  }
  auto files = read_files(model_folder);
  if (!files) return tl::unexpected(files.error());

  auto tokens = named_tokens(*files);
  json named = json::array();
  for (const auto& [name, text] : tokens) named.push_back(text);
  const std::string special = named.dump();
  coxswain_text error{};
  auto* handle =
      coxswain_tokenizer_load((*content)->data(), (*content)->size(), special.data(), special.size(), &error);
  if (!handle) return bad_input(path.string() + " can't be loaded: " + take(error) + ".");
  Tokenizer tokenizer(handle);
  tokenizer.special_ = resolve(tokenizer, *files, std::move(tokens));
  return tokenizer;
}

Result<std::vector<int64_t>> Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  coxswain_encoding out{};
  coxswain_text error{};
  if (!coxswain_tokenizer_encode(handle_.get(), text.data(), text.size(), add_special_tokens, false, &out,
                                 &error)) {
    return bad_input(take(error));
  }
  std::vector<int64_t> ids(out.ids, out.ids + out.count);
  coxswain_encoding_free(out);
  return ids;
}

Result<Encoding> Tokenizer::encode_with_offsets(std::string_view text, bool add_special_tokens) const {
  coxswain_encoding out{};
  coxswain_text error{};
  if (!coxswain_tokenizer_encode(handle_.get(), text.data(), text.size(), add_special_tokens, true, &out,
                                 &error)) {
    return bad_input(take(error));
  }
  Encoding encoding;
  encoding.ids.assign(out.ids, out.ids + out.count);
  encoding.offsets.reserve(out.count);
  for (size_t i = 0; i < out.count; ++i) {
    encoding.offsets.push_back(
        {static_cast<int64_t>(out.spans[i].begin), static_cast<int64_t>(out.spans[i].end)});
  }
  coxswain_encoding_free(out);
  return encoding;
}

Result<std::string> Tokenizer::decode(std::span<const int64_t> ids, bool skip_special_tokens) const {
  std::vector<uint32_t> narrow;
  narrow.reserve(ids.size());
  for (int64_t id : ids) {
    if (id < 0 || id > std::numeric_limits<uint32_t>::max()) {
      return bad_input("Can't decode the token id " + std::to_string(id) + ".");
    }
    narrow.push_back(static_cast<uint32_t>(id));
  }
  coxswain_text out{}, error{};
  if (!coxswain_tokenizer_decode(handle_.get(), narrow.data(), narrow.size(), skip_special_tokens, &out,
                                 &error)) {
    return bad_input(take(error));
  }
  return take(out);
}

std::optional<int64_t> Tokenizer::token_to_id(std::string_view token) const {
  uint32_t id = 0;
  if (!coxswain_tokenizer_token_to_id(handle_.get(), token.data(), token.size(), &id)) return std::nullopt;
  return id;
}

std::optional<std::string> Tokenizer::id_to_token(int64_t id) const {
  coxswain_text out{};
  if (id < 0 || id > std::numeric_limits<uint32_t>::max() ||
      !coxswain_tokenizer_id_to_token(handle_.get(), static_cast<uint32_t>(id), &out)) {
    return std::nullopt;
  }
  return take(out);
}

int64_t Tokenizer::vocabulary_size() const {
  return static_cast<int64_t>(coxswain_tokenizer_vocabulary_size(handle_.get()));
}

int64_t Tokenizer::pad_id() const {
  return special_.pad_id.value_or(special_.eos_id.value_or(0));
}

}  // namespace coxswain
