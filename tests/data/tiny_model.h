// A model folder for tests: config.json and a byte-level tokenizer without merges, so that every byte of text
// is the token of its own value, and the special tokens follow from 256 on.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace coxswain {

inline constexpr int64_t kBos = 256;  // "<s>"
inline constexpr int64_t kEos = 257;  // "</s>"
inline constexpr int64_t kEnd = 258;  // "<end>"

// A new folder under the temporary one; removed, with all in it, when it goes.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, std::string_view content) const;

 private:
  std::filesystem::path path_;
};

// tokenizer.json, tokenizer_config.json (eos_token </s>, and `extra` merged in) and config.json (vocab_size
// 259, 64 positions).
void write_tiny_model(const TemporaryFolder& folder, const nlohmann::json& extra = nlohmann::json::object());

// The tokens of text without special tokens in it.
std::vector<int64_t> bytes(std::string_view text);

}  // namespace coxswain
