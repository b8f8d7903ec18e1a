// Hugging Face tokenizers (tokenizer.json) for C++. Torch-free; the work is done by the `tokenizers` crate
// behind ffi.h. A Tokenizer is move-only, immutable after loading, and may be used from several threads at
// once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "contract/result.h"

struct coxswain_tokenizer;  // ffi.h

namespace coxswain {

// Token ids and, for each, the bytes [begin, end) of the text that it stands for. A token that holds a part
// of a character spans the whole character; a token that stands for no text has begin == end.
struct Encoding {
  struct Span {
    int64_t begin = 0;
    int64_t end = 0;
  };
  std::vector<int64_t> ids;
  std::vector<Span> offsets;
};

// The special tokens of a model folder. Texts come from tokenizer_config.json, then special_tokens_map.json
// (strings or objects with `content`); ids that are named only by number from generation_config.json, then
// config.json.
struct SpecialTokens {
  std::map<std::string, std::string> by_name;  // "bos_token" → "<s>" …: what a chat template may refer to
  std::optional<int64_t> bos_id;
  std::optional<int64_t> eos_id;
  std::optional<int64_t> pad_id;  // as the model says; see Tokenizer::pad_id() for one that is always there
  std::vector<int64_t>
      stop_ids;  // all that end a generation: eos_token and generation_config's eos_token_id(s)
};

class Tokenizer {
 public:
  // `model_folder` holds tokenizer.json and, where present, the files that SpecialTokens names. A missing or
  // broken file is a bad input (exit code 2) whose message names it.
  static Result<Tokenizer> load(const std::filesystem::path& model_folder);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // `text` is UTF-8. `add_special_tokens` runs the tokenizer's post-processor (BOS, EOS as it says); text
  // that a chat template rendered is encoded without.
  Result<std::vector<int64_t>> encode(std::string_view text, bool add_special_tokens) const;
  Result<Encoding> encode_with_offsets(std::string_view text, bool add_special_tokens) const;

  Result<std::string> decode(std::span<const int64_t> ids, bool skip_special_tokens) const;

  std::optional<int64_t> token_to_id(std::string_view token) const;
  std::optional<std::string> id_to_token(int64_t id) const;
  int64_t vocabulary_size() const;  // with added tokens; a model's embedding may have more rows

  const SpecialTokens& special_tokens() const { return special_; }
  // The pad token, else EOS, else 0. Padding is told by length, never by this id.
  int64_t pad_id() const;

 private:
  struct Free {
    void operator()(coxswain_tokenizer* handle) const;
  };
  explicit Tokenizer(coxswain_tokenizer* handle);

  std::unique_ptr<coxswain_tokenizer, Free> handle_;
  SpecialTokens special_;
};

}  // namespace coxswain
