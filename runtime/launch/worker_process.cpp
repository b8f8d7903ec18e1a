#include "runtime/launch/worker_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "contract/contract.h"

namespace coxswain {

namespace {

struct Pipe {
  Fd read;
  Fd write;
};

// The read end is ours and non-blocking; the write end is the child's.
Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return fail(contract::ExitCode::kInternal,
                std::string("Can't make a pipe: ") + std::strerror(errno) + ".");
  Pipe pipe{Fd(ends[0]), Fd(ends[1])};
  ::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
  return pipe;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& string : strings) result.push_back(string.data());
  result.push_back(nullptr);
  return result;
}

struct ChildEnds {
  int out = -1;  // -1: inherited
  int err = -1;
  int progress = -1;
  int failure = -1;  // close-on-exec: takes errno if exec fails
};

// Between fork and exec of a process that may have threads: only async-signal-safe calls.
[[noreturn]] void run_child(const ChildEnds& ends, pid_t parent, char* const* arguments,
                            char* const* environment) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(static_cast<int>(contract::ExitCode::kInternal));
  ::setpgid(0, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  const int null = ::open("/dev/null", O_RDONLY);
  ::dup2(null, STDIN_FILENO);
  if (ends.out >= 0) ::dup2(ends.out, STDOUT_FILENO);
  ::dup2(ends.err, STDERR_FILENO);
  ::fcntl(ends.progress, F_SETFD, 0);
  ::execve(arguments[0], arguments, environment);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(ends.failure, &error, sizeof(error));
  ::_exit(static_cast<int>(contract::ExitCode::kInternal));
}

}  // namespace

Fd::Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Fd& Fd::operator=(Fd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Fd::~Fd() {
  reset();
}

void Fd::reset() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Result<WorkerProcess> start_worker(const std::string& name, const WorkerCommand& command) {
  Result<Pipe> out = make_pipe();
  Result<Pipe> err = make_pipe();
  Result<Pipe> progress = make_pipe();
  Result<Pipe> failure = make_pipe();
  for (const Result<Pipe>* pipe : {&out, &err, &progress, &failure})
    if (!*pipe) return tl::unexpected(pipe->error());

  std::vector<std::string> arguments = command.arguments;
  std::vector<std::string> environment = command.environment;
  environment.push_back(std::string(contract::kEnvProgressFd) + "=" + std::to_string(progress->write.get()));
  const std::vector<char*> argument_pointers = pointers(arguments);
  const std::vector<char*> environment_pointers = pointers(environment);
  const ChildEnds ends{command.inherit_stdout ? -1 : out->write.get(), err->write.get(),
                       progress->write.get(), failure->write.get()};
  const pid_t self = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) run_child(ends, self, argument_pointers.data(), environment_pointers.data());
  if (pid < 0)
    return fail(contract::ExitCode::kInternal, "Can't start " + name + ": " + std::strerror(errno) + ".");

  // Ends when exec closes the child's end, or brings the error.
  failure->write.reset();
  ::fcntl(failure->read.get(), F_SETFL, 0);
  int error = 0;
  ssize_t size = 0;
  do size = ::read(failure->read.get(), &error, sizeof(error));
  while (size < 0 && errno == EINTR);
  if (size > 0)
    return fail(contract::ExitCode::kInternal,
                "Can't start " + name + ": " + command.arguments[0] + ": " + std::strerror(error) + ".");
  WorkerProcess worker;
  worker.pid = pid;
  if (!command.inherit_stdout) worker.out = std::move(out->read);
  worker.err = std::move(err->read);
  worker.progress = std::move(progress->read);
  return worker;
}

void signal_worker(pid_t pid, int signal) {
  if (::kill(-pid, signal) != 0) ::kill(pid, signal);
}

}  // namespace coxswain
