// Programs that tests start: none of them outlives the test binary, however that ends.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace coxswain::testing {

struct Command {
  std::vector<std::string> argv;             // argv[0]: the program's path
  std::map<std::string, std::string> env{};  // added to ours; a value of "" takes the variable away
};

// A program that runs until it is killed; its output goes to a file. Not thread-safe.
class Daemon {
 public:
  Daemon() = default;
  // Appends to `log`. Throws std::runtime_error when the program can't be started.
  Daemon(Command command, const std::filesystem::path& log);
  ~Daemon();
  Daemon(Daemon&& other) noexcept;
  Daemon& operator=(Daemon&& other) noexcept;

  pid_t pid() const { return pid_; }  // 0: none
  bool running();
  // By SIGKILL; returns when it is gone.
  void kill();
  // By SIGTERM; by SIGKILL where that takes longer. Returns the exit code, or -signal.
  int stop(std::chrono::seconds patience = std::chrono::seconds(20));

 private:
  pid_t pid_ = 0;
};

struct Finished {
  int exit_code = -1;  // -signal where one ended it
  std::string out;
  std::string err;
};

// Runs a program to its end, with `input` as its standard input.
Finished run_program(const Command& command, const std::string& input = "");

// A folder of its own under the system's one for temporary files, removed with the object. What test binaries
// that crashed have left is removed by the next one.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Writes it with the mode 0600; returns its path.
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

// The last lines of a file, for messages.
std::string tail(const std::filesystem::path& file, size_t lines = 20);

// A port of loopback that was free a moment ago, and that the system gives to nobody who asks for any port:
// so a server may be killed and started on it again.
int pick_port();

// Asks until it holds; false when `bound` has passed.
bool eventually(const std::function<bool()>& holds,
                std::chrono::milliseconds bound = std::chrono::seconds(60));

}  // namespace coxswain::testing
