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

}  // namespace

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
