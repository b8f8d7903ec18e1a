#include "tests/data/tiny_model.h"

#include <stdlib.h>

#include <fstream>
#include <stdexcept>

namespace coxswain {
namespace {

using nlohmann::json;

std::string utf8(int code) {
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

// How byte-level tokenizers write bytes: printable ones as themselves, the others from U+0100 on.
json byte_vocabulary() {
  json vocabulary;
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    vocabulary[utf8(printable ? byte : next++)] = byte;
  }
  return vocabulary;
}

json special_token(int64_t id, const char* content) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

json tiny_tokenizer() {
  const json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  json vocabulary = byte_vocabulary();
  vocabulary["<s>"] = kBos;
  vocabulary["</s>"] = kEos;
  vocabulary["<end>"] = kEnd;
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens",
           {special_token(kBos, "<s>"), special_token(kEos, "</s>"), special_token(kEnd, "<end>")}},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level},
          {"post_processor", nullptr},
          {"decoder", byte_level},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", json::array()}}}};
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "coxswain-data-XXXXXX").string();
  if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

std::filesystem::path TemporaryFolder::write(const std::string& name, std::string_view content) const {
  std::ofstream(path_ / name, std::ios::binary) << content;
  return path_ / name;
}

void write_tiny_model(const TemporaryFolder& folder, const json& extra) {
  json config = {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"eos_token", "</s>"}};
  config.update(extra);
  folder.write("tokenizer.json", tiny_tokenizer().dump());
  folder.write("tokenizer_config.json", config.dump());
  folder.write("config.json", json({{"vocab_size", 259}, {"max_position_embeddings", 64}}).dump());
}

std::vector<int64_t> bytes(std::string_view text) {
  std::vector<int64_t> ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

}  // namespace coxswain
