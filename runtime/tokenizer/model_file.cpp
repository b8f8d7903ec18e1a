#include "runtime/tokenizer/model_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>

namespace coxswain {

Result<std::optional<std::string>> read_model_file(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(file), {}};
  if (!file.good() && !file.eof()) {
    return bad_input("Can't read " + path.string() + ": " + std::strerror(errno) + ".");
  }
  return content;
}

Result<nlohmann::json> read_model_json(const std::filesystem::path& path) {
  auto content = read_model_file(path);
  if (!content) return tl::unexpected(content.error());
  if (!*content) return nlohmann::json::object();
  try {
    auto json = nlohmann::json::parse(**content);
    if (json.is_object()) return json;
    return bad_input(path.string() + " must hold a JSON object, but holds " + json.type_name() + ".");
  } catch (const nlohmann::json::parse_error& e) {
    return bad_input(path.string() + " is not valid JSON at byte " + std::to_string(e.byte) +
                     "; copy the model folder again.");
  }
}

}  // namespace coxswain
