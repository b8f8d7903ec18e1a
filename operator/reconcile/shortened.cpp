#include "operator/reconcile/shortened.h"

namespace coxswain {

std::string shortened(const std::string& text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  size_t end = max_bytes - 3;
  const auto is_continuation = [&](size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
  };
  while (end > 0 && is_continuation(end)) --end;
  return text.substr(0, end) + "...";
}

}  // namespace coxswain
