#include "runtime/launch/line_forwarder.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace coxswain {

namespace {

constexpr size_t kLongestLine = 64 * 1024;

}  // namespace

LineForwarder::LineForwarder(int out_fd, std::string prefix, size_t lines_kept)
    : out_fd_(out_fd), prefix_(std::move(prefix)), lines_kept_(lines_kept) {}

void LineForwarder::feed(std::string_view bytes) {
  if (prefix_.empty()) write_out(bytes);
  while (!bytes.empty()) {
    const size_t newline = bytes.find('\n');
    const bool whole = newline != std::string_view::npos;
    unfinished_ += bytes.substr(0, newline);
    bytes.remove_prefix(whole ? newline + 1 : bytes.size());
    if (!whole && unfinished_.size() < kLongestLine) break;
    if (!prefix_.empty()) write_out(prefix_ + unfinished_ + "\n");
    keep(unfinished_);
    unfinished_.clear();
  }
}

void LineForwarder::finish() {
  if (unfinished_.empty()) return;
  if (!prefix_.empty()) write_out(prefix_ + unfinished_ + "\n");
  keep(unfinished_);
  unfinished_.clear();
}

void LineForwarder::keep(std::string_view line) {
  if (line.empty() || lines_kept_ == 0) return;
  last_lines_.emplace_back(line);
  if (last_lines_.size() > lines_kept_) last_lines_.pop_front();
}

std::string LineForwarder::tail(size_t max_bytes) const {
  std::string text;
  for (const std::string& line : last_lines_) text += (text.empty() ? "" : "\n") + line;
  return text.size() > max_bytes ? text.substr(text.size() - max_bytes) : text;
}

void LineForwarder::write_out(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t written = ::write(out_fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {
      pollfd room{out_fd_, POLLOUT, 0};
      ::poll(&room, 1, -1);
      continue;
    }
    if (written < 0) return;  // Nobody reads any more; that must not end training.
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace coxswain
