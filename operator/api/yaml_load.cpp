// YAML text → JSON by the core schema of YAML 1.2, in which `no` is a string and `1e-5` a number.
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include "operator/api/json_input.h"
#include "operator/api/parse.h"

namespace coxswain {
namespace {

constexpr int kMaxDepth = 100;
constexpr int64_t kMaxNodes = 100'000;  // what a few lines of nested aliases can grow into

// Thrown and caught in this file only.
struct YamlProblem {
  int line;  // from 0; -1: unknown
  std::string message;
};

class Converter {
 public:
  Json convert(const YAML::Node& node, int depth = 0) {
    if (depth > kMaxDepth) throw YamlProblem{line(node), "is nested more than 100 deep"};
    if (++nodes_ > kMaxNodes) throw YamlProblem{line(node), "grows to more than 100,000 values"};
    switch (node.Type()) {
      case YAML::NodeType::Sequence:
        return sequence(node, depth);
      case YAML::NodeType::Map:
        return mapping(node, depth);
      case YAML::NodeType::Scalar:
        return scalar(node);
      default:
        return nullptr;
    }
  }

 private:
  static int line(const YAML::Node& node) { return node.Mark().line; }

  Json sequence(const YAML::Node& node, int depth) {
    Json out = Json::array();
    for (const YAML::Node& item : node) out.push_back(convert(item, depth + 1));
    return out;
  }

  Json mapping(const YAML::Node& node, int depth) {
    Json out = Json::object();
    Json merged = Json::object();
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) throw YamlProblem{line(entry.first), "has a key that is not a string"};
      const std::string key = entry.first.Scalar();
      if (key == "<<" && entry.first.Tag() == "?") {
        merge(convert(entry.second, depth + 1), line(entry.first), merged);
      } else if (out.contains(key)) {
        throw YamlProblem{line(entry.first), "has the key '" + key + "' twice"};
      } else {
        out[key] = convert(entry.second, depth + 1);
      }
    }
    for (auto& [key, value] : merged.items()) {
      if (!out.contains(key)) out[key] = value;
    }
    return out;
  }

  static void merge(const Json& source, int line, Json& into) {
    const Json sources = source.is_array() ? source : Json::array({source});
    for (const Json& mapping : sources) {
      if (!mapping.is_object()) throw YamlProblem{line, "merges ('<<') something that is no mapping"};
      for (const auto& [key, value] : mapping.items()) {
        if (!into.contains(key)) into[key] = value;
      }
    }
  }

  static Json scalar(const YAML::Node& node) {
    const std::string& text = node.Scalar();
    const std::string& tag = node.Tag();
    if (tag != "?" && tag != "") return tagged(node, text, tag);
    return plain(node, text);
  }

  static Json tagged(const YAML::Node& node, const std::string& text, const std::string& tag) {
    if (tag == "!" || tag == "tag:yaml.org,2002:str") return text;  // quoted, or said to be a string
    const Json value = plain(node, text);
    if ((tag == "tag:yaml.org,2002:int" && value.is_number_integer()) ||
        (tag == "tag:yaml.org,2002:bool" && value.is_boolean()) ||
        (tag == "tag:yaml.org,2002:null" && value.is_null())) {
      return value;
    }
    if (tag == "tag:yaml.org,2002:float" && value.is_number()) return value.get<double>();
    throw YamlProblem{line(node), "has '" + text + "' with the tag " + tag + ", which does not fit it"};
  }

  static Json plain(const YAML::Node& node, const std::string& text) {
    static const std::regex integer("[-+]?[0-9]+|0x[0-9a-fA-F]+|0o[0-7]+");
    static const std::regex number(R"([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?)");
    static const std::regex not_finite(R"([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))");
    if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return nullptr;
    if (text == "true" || text == "True" || text == "TRUE") return true;
    if (text == "false" || text == "False" || text == "FALSE") return false;
    if (text.size() > 64) return text;
    if (std::regex_match(text, integer)) return whole(node, text);
    if (std::regex_match(text, number)) return real(node, text);
    if (std::regex_match(text, not_finite)) {
      throw YamlProblem{line(node), "has " + text + ", which JSON cannot hold"};
    }
    return text;
  }

  // A leading zero is YAML 1.1's octal and YAML 1.2's decimal: kept as the string that it most often is.
  static Json whole(const YAML::Node& node, const std::string& text) {
    const bool negative = text[0] == '-';
    const std::string digits = text[0] == '-' || text[0] == '+' ? text.substr(1) : text;
    int base = 10;
    size_t skip = 0;
    if (digits.size() > 1 && digits[0] == '0') {
      if (digits[1] != 'x' && digits[1] != 'o') return text;
      base = digits[1] == 'x' ? 16 : 8;
      skip = 2;
    }
    errno = 0;
    const long long value =
        std::strtoll(((negative ? "-" : "") + digits.substr(skip)).c_str(), nullptr, base);
    if (errno == ERANGE) return real(node, text);
    return static_cast<int64_t>(value);
  }

  static Json real(const YAML::Node& node, const std::string& text) {
    const double value = std::strtod(text.c_str(), nullptr);
    if (!std::isfinite(value))
      throw YamlProblem{line(node), "has " + text + ", which is too large for a number"};
    return value;
  }

  int64_t nodes_ = 0;
};

std::string located(const std::string& name, int line, const std::string& message) {
  return name + (line >= 0 ? ":" + std::to_string(line + 1) : "") + ": " + message;
}

}  // namespace

Result<std::vector<Json>> load_yaml(std::string_view text, const std::string& name) {
  if (const auto at = not_utf8_at(text)) {
    const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(*at), '\n');
    return bad_input(located(name, static_cast<int>(line), "is not UTF-8 text; save it in that encoding"));
  }
  try {
    std::vector<Json> documents;
    for (const YAML::Node& node : YAML::LoadAll(std::string(text))) {
      Json document = Converter().convert(node);
      if (!document.is_null()) documents.push_back(std::move(document));
    }
    return documents;
  } catch (const YamlProblem& problem) {
    return bad_input(located(name, problem.line, problem.message));
  } catch (const YAML::Exception& error) {
    return bad_input(located(name, error.mark.line, "is not YAML: " + error.msg));
  }
}

Result<std::vector<Json>> load_yaml_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return bad_input(path + ": cannot be opened: " + std::generic_category().message(errno));
  if (std::filesystem::is_directory(path)) return bad_input(path + ": is a folder, not a YAML file");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) return bad_input(path + ": cannot be read");
  return load_yaml(text, path);
}

}  // namespace coxswain
