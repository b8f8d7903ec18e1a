#include "cli/process_node/supervisor.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace coxswain {

namespace {

// SIGHUP is both what we send for "kill all" and what the kernel sends the supervisor when its parent dies,
// so that a parent killed by SIGKILL leaves nothing behind.
constexpr int kKillAll = SIGHUP;

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const std::string& s : strings) result.push_back(const_cast<char*>(s.c_str()));
  result.push_back(nullptr);
  return result;
}

// The parent field of /proc/<pid>/stat comes after the name in parentheses, which may hold anything.
pid_t parent_of(const char* pid) {
  char path[sizeof(dirent::d_name) + sizeof "/proc//stat"];
  std::snprintf(path, sizeof path, "/proc/%s/stat", pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  char text[512];
  const ssize_t size = read(fd, text, sizeof text - 1);
  close(fd);
  if (size <= 0) return -1;
  text[size] = 0;
  const char* end = std::strrchr(text, ')');
  return end != nullptr && std::strlen(end) > 4 ? static_cast<pid_t>(std::atol(end + 4)) : -1;
}

void kill_children() {
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return;
  const pid_t self = getpid();
  while (const dirent* entry = readdir(proc)) {
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
    if (parent_of(entry->d_name) == self) kill(static_cast<pid_t>(std::atol(entry->d_name)), SIGKILL);
  }
  closedir(proc);
}

// Orphans come to us (subreaper), so killing children until there are none ends every descendant.
void kill_everything() {
  for (;;) {
    kill_children();
    pid_t pid = 0;
    while ((pid = waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (pid < 0 && errno == ECHILD) return;
    usleep(2000);
  }
}

sigset_t supervisor_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int s : {SIGTERM, SIGINT, SIGQUIT, kKillAll, SIGCHLD}) sigaddset(&signals, s);
  return signals;
}

int status_code(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

[[noreturn]] void run_program(const ProgramSpec& spec, pid_t supervisor, char** argv, char** environment) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != supervisor) _exit(kCannotExecute);
  for (int signal_number = 1; signal_number < NSIG; ++signal_number) signal(signal_number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (chdir(spec.working_directory.c_str()) == 0) execve(spec.program.c_str(), argv, environment);
  dprintf(STDERR_FILENO, "cannot run %s in %s: %s\n", spec.program.c_str(), spec.working_directory.c_str(),
          std::strerror(errno));
  _exit(kCannotExecute);
}

[[noreturn]] void supervise(const ProgramSpec& spec, pid_t parent, int output, char** argv,
                            char** environment) {
  const sigset_t signals = supervisor_signals();
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  setpgid(0, 0);  // Ctrl-C at the terminal is for the parent alone
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_PDEATHSIG, kKillAll);
  if (getppid() != parent) _exit(128 + SIGKILL);
  prctl(PR_SET_NAME, spec.title.c_str());
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  close_range(3, ~0U, 0);

  const pid_t self = getpid();
  const pid_t program = fork();
  if (program == 0) run_program(spec, self, argv, environment);
  if (program < 0) _exit(kCannotExecute);
  for (;;) {
    const int received = sigwaitinfo(&signals, nullptr);
    if (received == SIGTERM) kill(program, SIGTERM);
    if (received == kKillAll) kill(program, SIGKILL);
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (pid != program || (!WIFEXITED(status) && !WIFSIGNALED(status))) continue;
      kill_everything();
      _exit(status_code(status));
    }
  }
}

}  // namespace

Result<Supervised> start_supervised(const ProgramSpec& spec) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return fail(contract::ExitCode::kInternal, std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  std::vector<char*> argv = pointers(spec.argv);
  std::vector<char*> environment = pointers(spec.environment);
  const pid_t parent = getpid();
  std::fflush(nullptr);
  // Blocked across the fork, so that no signal meant for the supervisor runs into this program's handlers in
  // it.
  sigset_t before;
  const sigset_t signals = supervisor_signals();
  sigprocmask(SIG_BLOCK, &signals, &before);
  const pid_t pid = fork();
  if (pid == 0) supervise(spec, parent, ends[1], argv.data(), environment.data());
  sigprocmask(SIG_SETMASK, &before, nullptr);
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return fail(contract::ExitCode::kInternal,
                std::string("cannot start a process: ") + std::strerror(errno));
  }
  setpgid(pid, pid);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return Supervised{pid, ends[0]};
}

void ask_to_end(pid_t supervisor) {
  kill(supervisor, SIGTERM);
}

void kill_all_in(pid_t supervisor) {
  kill(supervisor, kKillAll);
}

}  // namespace coxswain
