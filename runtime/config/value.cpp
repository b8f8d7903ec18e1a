#include "runtime/config/value.h"

#include <charconv>
#include <cmath>

namespace coxswain {

bool is_none(const YAML::Node& value) {
  if (value.IsNull()) return true;
  if (!value.IsScalar()) return false;
  const std::string& word = value.Scalar();
  return word == "none" || word == "None" || word == "null" || word == "~" || word.empty();
}

std::optional<double> as_real(const YAML::Node& value) {
  if (!value.IsScalar()) return std::nullopt;
  const std::string& word = value.Scalar();
  const char* begin = word.data() + (word.starts_with('+') ? 1 : 0);
  const char* end = word.data() + word.size();
  double number = 0;
  const auto [stop, error] = std::from_chars(begin, end, number);
  if (error != std::errc() || stop != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::optional<int64_t> as_integer(const YAML::Node& value) {
  if (!value.IsScalar()) return std::nullopt;
  const std::string& word = value.Scalar();
  int64_t number = 0;
  const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error == std::errc() && stop == word.data() + word.size()) return number;
  // 1e3 and 8.0 are whole numbers too; above 2^53 a double no longer tells which.
  const std::optional<double> real = as_real(value);
  if (!real || *real != std::floor(*real) || std::abs(*real) > 9007199254740992.0) return std::nullopt;
  return static_cast<int64_t>(*real);
}

std::optional<bool> as_boolean(const YAML::Node& value) {
  bool flag = false;
  if (!value.IsScalar() || !YAML::convert<bool>::decode(value, flag)) return std::nullopt;
  return flag;
}

std::string describe(const YAML::Node& value) {
  constexpr size_t kLongest = 80;
  if (value.IsNull()) return "null";
  if (value.IsSequence()) return "a list";
  if (value.IsMap()) return "a mapping";
  const std::string& word = value.Scalar();
  if (as_real(value) || as_boolean(value)) return word;
  return "'" + (word.size() > kLongest ? word.substr(0, kLongest) + "…" : word) + "'";
}

}  // namespace coxswain
