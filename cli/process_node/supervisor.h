// A container's place as processes of this machine: a small supervisor process that is to the program what a
// container is. Everything that the program starts is in it; when the program ends, or whoever started the
// supervisor ends in whatever way, all of it is killed.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "contract/result.h"

namespace coxswain {

struct ProgramSpec {
  std::filesystem::path program;         // absolute
  std::vector<std::string> argv;         // argv[0] included
  std::vector<std::string> environment;  // "NAME=value"; nothing is inherited
  std::filesystem::path working_directory;
  std::string title;  // of the supervisor in `ps`
};

struct Supervised {
  pid_t pid = -1;   // of the supervisor; its exit status is the program's, or 128 + the signal that ended it
  int output = -1;  // stdout and stderr of the program, non-blocking; the caller closes it
};

// Exit status when the program could not be executed.
inline constexpr int kCannotExecute = 126;

// The caller must have one thread and reap the pid.
Result<Supervised> start_supervised(const ProgramSpec& spec);

// SIGTERM to the program itself (not to what it started), as a kubelet does to a container's PID 1.
void ask_to_end(pid_t supervisor);

// Ends everything in it at once.
void kill_all_in(pid_t supervisor);

}  // namespace coxswain
