// A child process with its pipes.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "contract/result.h"

namespace coxswain {

// An owned file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept;
  Fd& operator=(Fd&& other) noexcept;
  ~Fd();

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset();

 private:
  int fd_ = -1;
};

struct WorkerCommand {
  std::vector<std::string> arguments;    // [0]: the program's path
  std::vector<std::string> environment;  // NAME=value, all of it
  bool inherit_stdout = false;           // the child writes to our stdout itself
};

struct WorkerProcess {
  pid_t pid = -1;
  Fd out;  // read ends, non-blocking; `out` is empty with inherit_stdout
  Fd err;
  Fd progress;  // the child finds the write end's number in COXSWAIN_PROGRESS_FD
};

// Starts it in a process group of its own (the terminal's Ctrl-C reaches only us), with an empty stdin and no
// signal blocked, to be killed by the kernel when the calling thread ends. `name` is what messages call it.
// Call from the main thread.
Result<WorkerProcess> start_worker(const std::string& name, const WorkerCommand& command);

// Signals the whole process group, or the process where the group is gone.
void signal_worker(pid_t pid, int signal);

}  // namespace coxswain
