#include "runtime/tokenizer/chat_template.h"

#include <nlohmann/json.hpp>

#include "runtime/tokenizer/ffi.h"
#include "runtime/tokenizer/ffi_text.h"
#include "runtime/tokenizer/model_file.h"

namespace coxswain {
namespace {

using nlohmann::json;

// `chat_template` of tokenizer_config.json: a string, or a list of {"name", "template"} of which `default` is
// meant.
Result<std::string> configured_template(const json& value, const std::string& file) {
  if (value.is_string()) return value.get<std::string>();
  std::string names;
  if (value.is_array()) {
    for (const json& entry : value) {
      if (!entry.is_object() || !entry.value("template", json()).is_string()) continue;
      const json name = entry.value("name", json());
      if (name == "default") return entry["template"].get<std::string>();
      names += (names.empty() ? "" : ", ") + (name.is_string() ? name.get<std::string>() : name.dump());
    }
  }
  return bad_input("chat_template in " + file + " must be a string or a list with a template named default" +
                   (names.empty() ? "." : "; it has: " + names + "."));
}

}  // namespace

void ChatTemplate::Free::operator()(coxswain_template* handle) const {
  coxswain_template_free(handle);
}

ChatTemplate::ChatTemplate(coxswain_template* handle) : handle_(handle) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::load(const std::filesystem::path& model_folder,
                                        const std::map<std::string, std::string>& special_tokens) {
  auto file = model_folder / "chat_template.jinja";
  auto source = read_model_file(file);
  if (!source) return tl::unexpected(source.error());
  if (!*source) {
    file = model_folder / "tokenizer_config.json";
    auto config = read_model_json(file);
    if (!config) return tl::unexpected(config.error());
    if (!config->contains("chat_template") || (*config)["chat_template"].is_null()) {
      return bad_input(
          "The model " + model_folder.string() +
          " has no chat template (no chat_template.jinja, no chat_template in tokenizer_config.json), which "
          "training on messages needs; use a chat model, or train on text with chat_template: none.");
    }
    auto configured = configured_template((*config)["chat_template"], file.string());
    if (!configured) return tl::unexpected(configured.error());
    *source = std::move(*configured);
  }
  auto compiled = compile(**source, special_tokens);
  if (!compiled) return bad_input(file.string() + ": " + compiled.error().message);
  return compiled;
}

Result<ChatTemplate> ChatTemplate::compile(std::string_view source,
                                           const std::map<std::string, std::string>& special_tokens) {
  const std::string variables = json(special_tokens).dump();
  coxswain_text error{};
  auto* handle =
      coxswain_template_compile(source.data(), source.size(), variables.data(), variables.size(), &error);
  if (!handle) return bad_input(take(error));
  return ChatTemplate(handle);
}

Result<RenderedChat> ChatTemplate::render(std::string_view messages_json, bool add_generation_prompt) const {
  coxswain_rendered out{};
  coxswain_text error{};
  if (!coxswain_template_render(handle_.get(), messages_json.data(), messages_json.size(),
                                add_generation_prompt, &out, &error)) {
    return bad_input(take(error));
  }
  RenderedChat rendered{std::string(out.text.data, out.text.length), {}};
  for (size_t i = 0; i < out.generated_count; ++i) {
    rendered.generated.push_back(
        {static_cast<int64_t>(out.generated[i].begin), static_cast<int64_t>(out.generated[i].end)});
  }
  coxswain_rendered_free(out);
  return rendered;
}

bool ChatTemplate::has_generation_tags() const {
  return coxswain_template_has_generation_tags(handle_.get());
}

}  // namespace coxswain
