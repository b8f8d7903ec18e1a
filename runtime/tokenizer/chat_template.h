// A model's chat template: rendered as transformers' apply_chat_template does (Jinja through the `minijinja`
// crate, behind ffi.h). Torch-free. Move-only, immutable after loading, usable from several threads at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "contract/result.h"

struct coxswain_template;  // ffi.h

namespace coxswain {

// Rendered text and the bytes [begin, end) of it that stood inside `{% generation %}` … `{% endgeneration
// %}`, in order.
struct RenderedChat {
  struct Span {
    int64_t begin = 0;
    int64_t end = 0;
  };
  std::string text;
  std::vector<Span> generated;
};

class ChatTemplate {
 public:
  // The template of a model folder: chat_template.jinja, else `chat_template` of tokenizer_config.json (a
  // string, or a list of named ones, of which `default` is taken). None, or one that doesn't compile: a bad
  // input that says so. `special_tokens`: Tokenizer::special_tokens().by_name.
  static Result<ChatTemplate> load(const std::filesystem::path& model_folder,
                                   const std::map<std::string, std::string>& special_tokens);
  static Result<ChatTemplate> compile(std::string_view source,
                                      const std::map<std::string, std::string>& special_tokens);

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // `messages_json`: a JSON array of {"role": …, "content": …}; keys whose value is null are dropped, as
  // transformers does. A template that calls raise_exception is a bad input whose message is the template's
  // own.
  Result<RenderedChat> render(std::string_view messages_json, bool add_generation_prompt) const;

  // Whether the template marks the assistant's text with generation tags.
  bool has_generation_tags() const;

 private:
  struct Free {
    void operator()(coxswain_template* handle) const;
  };
  explicit ChatTemplate(coxswain_template* handle);

  std::unique_ptr<coxswain_template, Free> handle_;
};

}  // namespace coxswain
