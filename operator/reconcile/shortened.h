// Others' words, cut to fit a condition or an event.
#pragma once

#include <string>

namespace coxswain {

// At most `max_bytes` of `text` (at least 3), "..." at the end where something was cut. Never cuts through a
// UTF-8 character: half of one cannot be written as JSON.
std::string shortened(const std::string& text, size_t max_bytes);

}  // namespace coxswain
