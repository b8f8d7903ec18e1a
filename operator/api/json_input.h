// JSON that somebody else wrote: a program in a pod, an API server that passes on what its users sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "operator/api/training_job.h"

namespace coxswain {

// Copying, comparing and writing a value recurse into it, so what is nested deeper than this would be
// somebody's way to exhaust the stack. API servers take objects of up to 10,000 levels; nothing of use has
// more than a few dozen.
inline constexpr int kMaxJsonDepth = 500;

// Discarded where the text is no JSON. Arrays and objects that lie deeper than kMaxJsonDepth are left out.
// Never throws.
Json parse_json(std::string_view text);

// Where the text stops being UTF-8, in bytes; nothing where all of it is. YAML readers let other bytes
// through, and JSON can't be written with them.
std::optional<size_t> not_utf8_at(std::string_view text);

// A whole number that fits, 2.0 included, as API servers count it among the integers; else nothing.
std::optional<int64_t> whole_number(const Json& value);

}  // namespace coxswain
