// A worker's output on its way to the agent's own: passed on, prefixed if asked, with its last lines kept.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

namespace coxswain {

// Not thread-safe.
class LineForwarder {
 public:
  // With a prefix, whole lines are written, each after it (a longer one than 64 KiB in pieces); without,
  // bytes as they come. Keeps the last `lines_kept` lines.
  LineForwarder(int out_fd, std::string prefix, size_t lines_kept);

  void feed(std::string_view bytes);

  // At the end of the stream: writes out an unfinished line.
  void finish();

  // The last lines, joined by newlines, cut at the front to `max_bytes`.
  std::string tail(size_t max_bytes) const;

 private:
  void keep(std::string_view line);
  void write_out(std::string_view bytes) const;

  int out_fd_;
  std::string prefix_;
  size_t lines_kept_;
  std::string unfinished_;
  std::deque<std::string> last_lines_;
};

}  // namespace coxswain
