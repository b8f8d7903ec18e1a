#include "operator/api/json_input.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace coxswain {
namespace {

// Of well-formed text; of other text any number.
int depth_of(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      quoted = !quoted;
    } else if (quoted) {
      if (c == '\\') ++i;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

// `depth`: of the value, 0 at the top.
bool is_kept(int depth, Json::parse_event_t event, Json&) {
  const bool begins = event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
  return !begins || depth < kMaxJsonDepth;
}

// Bytes of the well-formed sequence that the text begins with; 0: none (Unicode's table 3-7).
size_t sequence_length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto continues = [&](size_t i) { return byte(i) >= 0x80 && byte(i) <= 0xbf; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return continues(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool overlong = first == 0xe0 && byte(1) < 0xa0;
    const bool surrogate = first == 0xed && byte(1) > 0x9f;
    return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool overlong = first == 0xf0 && byte(1) < 0x90;
    const bool beyond = first == 0xf4 && byte(1) > 0x8f;
    return continues(1) && continues(2) && continues(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::optional<size_t> not_utf8_at(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = sequence_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

Json parse_json(std::string_view text) {
  // Asking for each value costs more than looking for the few texts that need it.
  if (depth_of(text) <= kMaxJsonDepth) return Json::parse(text, nullptr, false);
  return Json::parse(text, is_kept, false);
}

std::optional<int64_t> whole_number(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
    return static_cast<int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  if (std::nearbyint(number) != number || number < -kLimit || number >= kLimit) return std::nullopt;
  return static_cast<int64_t>(number);
}

}  // namespace coxswain
