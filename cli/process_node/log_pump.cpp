#include "cli/process_node/log_pump.h"

#include <unistd.h>

#include <cerrno>

namespace coxswain {

namespace {
// A program that never writes a newline must not fill our memory.
constexpr size_t kLongestLine = 64 * 1024;
constexpr size_t kTailBytes = 2048;
}  // namespace

LogPump::LogPump(int fd, const std::filesystem::path& file, std::string pod, int node_rank, LineSink sink)
    : fd_(fd),
      file_(file, std::ios::app),
      pod_(std::move(pod)),
      node_rank_(node_rank),
      sink_(std::move(sink)) {}

LogPump::~LogPump() {
  if (fd_ >= 0) close(fd_);
}

bool LogPump::pump() {
  char buffer[16384];
  while (fd_ >= 0) {
    const ssize_t size = read(fd_, buffer, sizeof buffer);
    if (size > 0) {
      file_.write(buffer, size);
      pending_.append(buffer, static_cast<size_t>(size));
      tail_.append(buffer, static_cast<size_t>(size));
      if (tail_.size() > kTailBytes) tail_.erase(0, tail_.size() - kTailBytes);
      emit_lines();
    } else if (size < 0 && errno == EINTR) {
      continue;
    } else if (size < 0 && errno == EAGAIN) {
      file_.flush();
      return true;
    } else {
      close(fd_);
      fd_ = -1;
    }
  }
  return false;
}

void LogPump::emit_lines() {
  size_t begin = 0;
  for (size_t end; (end = pending_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    size_t length = end - begin;
    if (length > 0 && pending_[end - 1] == '\r') --length;
    sink_(pod_, node_rank_, pending_.substr(begin, length));
  }
  pending_.erase(0, begin);
  if (pending_.size() > kLongestLine) {
    sink_(pod_, node_rank_, pending_);
    pending_.clear();
  }
}

void LogPump::finish() {
  pump();
  if (!pending_.empty()) sink_(pod_, node_rank_, pending_);
  pending_.clear();
  file_.flush();
}

}  // namespace coxswain
