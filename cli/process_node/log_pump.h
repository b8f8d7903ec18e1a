// A program's output, line by line, to its log file and to whoever shows it.
#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

namespace coxswain {

// `line` is without its newline.
using LineSink = std::function<void(const std::string& pod, int node_rank, const std::string& line)>;

class LogPump {
 public:
  // Takes over `fd`, which is non-blocking. The file is appended to.
  LogPump(int fd, const std::filesystem::path& file, std::string pod, int node_rank, LineSink sink);
  ~LogPump();
  LogPump(const LogPump&) = delete;
  LogPump& operator=(const LogPump&) = delete;

  // Passes on what is there. False once the other side has closed.
  bool pump();
  // Passes on the rest, an unfinished line included.
  void finish();
  int fd() const { return fd_; }
  // The last 2 KiB of the output.
  const std::string& tail() const { return tail_; }

 private:
  void emit_lines();

  int fd_;
  std::ofstream file_;
  const std::string pod_;
  const int node_rank_;
  const LineSink sink_;
  std::string pending_;
  std::string tail_;
};

}  // namespace coxswain
