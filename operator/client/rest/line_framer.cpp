#include "operator/client/rest/line_framer.h"

#include <utility>

namespace coxswain {

bool LineFramer::feed(std::string_view bytes, const std::function<void(std::string line)>& on_line) {
  while (!overrun_ && !bytes.empty()) {
    const auto end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    // One byte more than allowed: the CR of a CRLF is no part of the line.
    if (partial_.size() + part.size() > max_line_ + 1) {
      overrun_ = true;
      break;
    }
    partial_ += part;
    if (end == std::string_view::npos) break;
    bytes.remove_prefix(end + 1);
    std::string line = std::exchange(partial_, {});
    if (line.ends_with('\r')) line.pop_back();
    if (line.size() > max_line_) overrun_ = true;
    if (!overrun_ && !line.empty()) on_line(std::move(line));
  }
  if (overrun_) partial_ = std::string();
  return !overrun_;
}

}  // namespace coxswain
