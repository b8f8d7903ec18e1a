// JSON → YAML text that means the same to readers of YAML 1.1 (PyYAML, kubectl) and 1.2.
#include <yaml-cpp/yaml.h>

#include <regex>

#include "operator/api/parse.h"

namespace coxswain {
namespace {

// Words that some reader takes for something else than a string, or that need quotes to be one scalar.
bool needs_quotes(const std::string& text) {
  static const std::regex plain("[A-Za-z_/][A-Za-z0-9_./:@-]*");
  static const std::regex word("(?:y|n|yes|no|on|off|true|false|null)", std::regex::icase);
  return text.size() > 512 || !std::regex_match(text, plain) || text.back() == ':' ||
         std::regex_match(text, word);
}

bool fits_literal_block(const std::string& text) {
  if (text.size() < 2 || text.back() != '\n' || text[text.size() - 2] == '\n') return false;
  if (text.front() == ' ' || text.front() == '\n' || text.front() == '\t') return false;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n') return false;
    if (static_cast<unsigned char>(c) >= 0x7f) return false;
  }
  return text.find('\n') != std::string::npos;
}

void emit_string(YAML::Emitter& out, const std::string& text) {
  if (fits_literal_block(text)) {
    out << YAML::Literal << text;
  } else if (needs_quotes(text)) {
    out << YAML::DoubleQuoted << text;
  } else {
    out << text;
  }
}

// YAML 1.1 wants a point in the mantissa: 5e-05 would be a string to it.
std::string number_text(const Json& value) {
  std::string text = value.dump();
  const size_t exponent = text.find('e');
  if (value.is_number_float() && exponent != std::string::npos && text.find('.') == std::string::npos) {
    text.insert(exponent, ".0");
  }
  return text;
}

void emit(YAML::Emitter& out, const Json& value);

void emit_entry(YAML::Emitter& out, const std::string& key, const Json& value) {
  out << YAML::Key;
  if (needs_quotes(key)) {
    out << YAML::DoubleQuoted << key;
  } else {
    out << key;
  }
  out << YAML::Value;
  emit(out, value);
}

void emit_object(YAML::Emitter& out, const Json& object) {
  if (object.empty()) {
    out << YAML::Flow << YAML::BeginMap << YAML::EndMap;
    return;
  }
  out << YAML::BeginMap;
  static const std::string first[] = {"apiVersion", "kind", "metadata"};
  for (const std::string& key : first) {
    if (object.contains(key)) emit_entry(out, key, object[key]);
  }
  for (const auto& [key, value] : object.items()) {
    if (std::find(std::begin(first), std::end(first), key) == std::end(first)) emit_entry(out, key, value);
  }
  out << YAML::EndMap;
}

void emit(YAML::Emitter& out, const Json& value) {
  if (value.is_object()) {
    emit_object(out, value);
  } else if (value.is_array()) {
    if (value.empty()) out << YAML::Flow;
    out << YAML::BeginSeq;
    for (const Json& item : value) emit(out, item);
    out << YAML::EndSeq;
  } else if (value.is_string()) {
    emit_string(out, value.get_ref<const std::string&>());
  } else if (value.is_boolean()) {
    out << value.get<bool>();
  } else if (value.is_null()) {
    out << YAML::Null;
  } else {
    out << number_text(value);
  }
}

}  // namespace

std::string to_yaml(const Json& value) {
  YAML::Emitter out;
  emit(out, value);
  return std::string(out.c_str()) + "\n";
}

}  // namespace coxswain
