// Cuts a stream of bytes into lines, as they come: a watch's body is one JSON document for each line.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace coxswain {

class LineFramer {
 public:
  // max_line: the longest line taken, in bytes without its end.
  explicit LineFramer(size_t max_line) : max_line_(max_line) {}

  // Calls `on_line` for each line that is now complete (LF or CRLF; empty lines are passed over). False when
  // a line grew too long: nothing more comes out of this framer, its memory is given back.
  bool feed(std::string_view bytes, const std::function<void(std::string line)>& on_line);

  // Bytes of a line whose end has not come.
  size_t pending() const { return partial_.size(); }

 private:
  const size_t max_line_;
  std::string partial_;
  bool overrun_ = false;
};

}  // namespace coxswain
