#include "runtime/launch/agent.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "contract/contract.h"
#include "runtime/checkpoint/folders.h"
#include "runtime/launch/attempt_outcome.h"
#include "runtime/launch/available_cpus.h"
#include "runtime/launch/line_forwarder.h"
#include "runtime/launch/master_wait.h"
#include "runtime/launch/ports.h"
#include "runtime/launch/progress_board.h"
#include "runtime/launch/status_server.h"
#include "runtime/launch/termination_log.h"
#include "runtime/launch/worker_process.h"

extern char** environ;

namespace coxswain {

namespace {

using Clock = std::chrono::steady_clock;
using contract::ExitCode;

constexpr size_t kErrorLinesKept = 30;
constexpr int kKilledBySignal = 128;

void say(const std::string& text) {
  std::fprintf(stderr, "coxswain: %s\n", text.c_str());
  std::fflush(stderr);
}

double unix_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// SIGTERM, SIGINT and SIGCHLD as readable events, for as long as the program runs.
class Signals {
 public:
  Signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&set, signal);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
    fd_ = Fd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  }

  int fd() const { return fd_.get(); }

  // The next signal that came in; 0: none.
  int next() const {
    signalfd_siginfo info{};
    return ::read(fd_.get(), &info, sizeof(info)) == sizeof(info) ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  Fd fd_;
};

struct RunningWorker {
  int rank;
  WorkerProcess process;
  LineForwarder out;
  LineForwarder err;
  std::string progress_unfinished;
  bool running = true;
  bool signalled_by_agent = false;
};

class Agent {
 public:
  Agent(const AgentOptions& options, const EnvironmentLookup& environment)
      : options_(options),
        environment_(environment),
        board_(std::make_shared<ProgressBoard>(
            ProgressBoard::Pod{options.node.job.name, options.node.job.attempt, options.node.node_rank},
            ranks())) {}

  int run();

 private:
  std::vector<int> ranks() const;
  Result<void> prepare();
  Result<void> start_workers();
  WorkerCommand command_for(int local_rank, int threads) const;
  bool sleep_or_stop(std::chrono::milliseconds duration);

  void wait_for_event();
  void handle_signals();
  void handle_stop(int signal);
  void reap();
  void worker_ended(RunningWorker& worker, int status);
  void end_others();
  void kill_when_due();
  void signal_running(int signal);
  void read_from(RunningWorker& worker);
  void read_progress(RunningWorker& worker);
  bool any_running() const;
  int finish();

  const AgentOptions& options_;
  const EnvironmentLookup& environment_;
  Signals signals_;
  std::shared_ptr<ProgressBoard> board_;
  std::unique_ptr<StatusServer> server_;
  std::vector<std::unique_ptr<RunningWorker>> workers_;
  std::vector<WorkerEnd> ends_;
  bool stop_requested_ = false;
  std::optional<Clock::time_point> kill_at_;
};

std::vector<int> Agent::ranks() const {
  std::vector<int> ranks;
  for (int i = 0; i < options_.node.processes_per_node; ++i)
    ranks.push_back(options_.node.node_rank * options_.node.processes_per_node + i);
  return ranks;
}

// Drains a non-blocking descriptor; closes it at the end of the stream.
template <typename Take>
void drain(Fd& fd, Take take) {
  std::array<char, 65536> buffer;
  while (fd) {
    const ssize_t size = ::read(fd.get(), buffer.data(), buffer.size());
    if (size > 0) {
      take(std::string_view(buffer.data(), static_cast<size_t>(size)));
      continue;
    }
    if (size < 0 && errno == EINTR) continue;
    if (size == 0 || errno != EAGAIN) fd.reset();
    return;
  }
}

bool Agent::sleep_or_stop(std::chrono::milliseconds duration) {
  const Clock::time_point until = Clock::now() + duration;
  for (;;) {
    handle_signals();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (stop_requested_ || left <= 0) return stop_requested_;
    pollfd signal{signals_.fd(), POLLIN, 0};
    ::poll(&signal, 1, static_cast<int>(left));
  }
}

Result<void> Agent::prepare() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  Result<std::unique_ptr<StatusServer>> server =
      StatusServer::start(board_, options_.status_host, options_.status_port);
  if (!server) return tl::unexpected(server.error());
  server_ = *std::move(server);
  const NodeEnvironment& node = options_.node;
  if (node.node_rank == 0) return check_port_free(contract::kEnvMasterPort, node.master_port);
  return wait_for_master({node.master_addr, node.master_port, options_.start_timeout,
                          [this](std::chrono::milliseconds time) { return sleep_or_stop(time); }, say});
}

WorkerCommand Agent::command_for(int local_rank, int threads) const {
  const NodeEnvironment& node = options_.node;
  const std::vector<std::pair<std::string, std::string>> ours = {
      {contract::kEnvRank, std::to_string(node.node_rank * node.processes_per_node + local_rank)},
      {contract::kEnvLocalRank, std::to_string(local_rank)},
      {contract::kEnvWorldSize, std::to_string(node.nodes * node.processes_per_node)},
      {contract::kEnvLocalWorldSize, std::to_string(node.processes_per_node)},
      {contract::kEnvNodes, std::to_string(node.nodes)},
      {contract::kEnvNodeRank, std::to_string(node.node_rank)},
      {contract::kEnvProcessesPerNode, std::to_string(node.processes_per_node)},
      {contract::kEnvMasterAddr, node.master_addr},
      {contract::kEnvMasterPort, std::to_string(node.master_port)},
      {contract::kEnvConfig, options_.config_path},
      // An outer OMP_NUM_THREADS is the user's wish.
      {"OMP_NUM_THREADS", environment_("OMP_NUM_THREADS").value_or(std::to_string(threads))},
  };
  WorkerCommand command;
  command.arguments = {options_.worker_program, "train"};
  for (char** entry = environ; *entry; ++entry) {
    const std::string variable = *entry;
    const std::string name = variable.substr(0, variable.find('='));
    const bool replaced =
        name == contract::kEnvProgressFd ||
        std::any_of(ours.begin(), ours.end(), [&](const auto& our) { return our.first == name; });
    if (!replaced) command.environment.push_back(variable);
  }
  for (const auto& [name, value] : ours) command.environment.push_back(name + "=" + value);
  // One worker's output needs no prefix; of several, the first keeps the terminal for its progress line.
  command.inherit_stdout = node.processes_per_node == 1 || (local_rank == 0 && ::isatty(STDOUT_FILENO) == 1);
  return command;
}

Result<void> Agent::start_workers() {
  const int count = options_.node.processes_per_node;
  const int threads = threads_per_worker(available_cpus(), count);
  for (int local_rank = 0; local_rank < count; ++local_rank) {
    const int rank = ranks()[static_cast<size_t>(local_rank)];
    Result<WorkerProcess> process =
        start_worker("rank " + std::to_string(rank), command_for(local_rank, threads));
    if (!process) return tl::unexpected(process.error());
    const std::string prefix = count > 1 ? fmt::format("[rank {}] ", rank) : "";
    workers_.push_back(std::make_unique<RunningWorker>(
        RunningWorker{rank, *std::move(process), LineForwarder(STDOUT_FILENO, prefix, 0),
                      LineForwarder(STDERR_FILENO, prefix, kErrorLinesKept), ""}));
  }
  return {};
}

bool Agent::any_running() const {
  return std::any_of(workers_.begin(), workers_.end(), [](const auto& worker) { return worker->running; });
}

void Agent::signal_running(int signal) {
  for (const auto& worker : workers_)
    if (worker->running) signal_worker(worker->process.pid, signal);
}

void Agent::handle_stop(int signal) {
  if (stop_requested_ && signal == SIGINT && any_running()) {
    say("Interrupted again: killing the workers without saving.");
    signal_running(SIGKILL);
    return;
  }
  if (!stop_requested_ && any_running()) say("Stopping: the workers save at the end of this step.");
  stop_requested_ = true;
  signal_running(SIGTERM);
}

void Agent::handle_signals() {
  while (const int signal = signals_.next())
    if (signal != SIGCHLD) handle_stop(signal);
  reap();
}

void Agent::reap() {
  int status = 0;
  for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;)
    for (const auto& worker : workers_)
      if (worker->running && worker->process.pid == pid) worker_ended(*worker, status);
}

void Agent::worker_ended(RunningWorker& worker, int status) {
  worker.running = false;
  read_from(worker);
  worker.out.finish();
  worker.err.finish();
  // What the worker itself had started must not outlive it.
  ::kill(-worker.process.pid, SIGKILL);
  const bool killed = WIFSIGNALED(status);
  // Asked to stop while it was still loading itself: it had nothing to save.
  const bool stopped =
      killed && stop_requested_ && (WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGINT);
  const int exit_code = stopped  ? static_cast<int>(ExitCode::kStopped)
                        : killed ? kKilledBySignal + WTERMSIG(status)
                                 : WEXITSTATUS(status);
  const bool by_agent =
      worker.signalled_by_agent && killed && (WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGKILL);
  ends_.push_back({worker.rank, exit_code, by_agent});
  // After an agreed stop the others are saving too, and a slow volume takes its time.
  if (exit_code != 0 && exit_code != static_cast<int>(ExitCode::kStopped)) end_others();
}

void Agent::end_others() {
  if (kill_at_) return;
  kill_at_ = Clock::now() + options_.kill_after;
  for (const auto& worker : workers_) {
    if (!worker->running) continue;
    worker->signalled_by_agent = true;
    signal_worker(worker->process.pid, SIGTERM);
  }
}

void Agent::kill_when_due() {
  if (!kill_at_ || Clock::now() < *kill_at_ || !any_running()) return;
  say("A worker failed and others did not end in time: killing them.");
  signal_running(SIGKILL);
  kill_at_ = Clock::now() + options_.kill_after;
}

void Agent::read_progress(RunningWorker& worker) {
  std::string& text = worker.progress_unfinished;
  drain(worker.process.progress, [&](std::string_view bytes) { text += bytes; });
  size_t begin = 0;
  for (size_t newline; (newline = text.find('\n', begin)) != std::string::npos; begin = newline + 1)
    board_->update(worker.rank, std::string_view(text).substr(begin, newline - begin), unix_now());
  text.erase(0, begin);
}

void Agent::read_from(RunningWorker& worker) {
  drain(worker.process.out, [&](std::string_view bytes) { worker.out.feed(bytes); });
  drain(worker.process.err, [&](std::string_view bytes) { worker.err.feed(bytes); });
  read_progress(worker);
}

void Agent::wait_for_event() {
  std::vector<pollfd> fds{{signals_.fd(), POLLIN, 0}};
  for (const auto& worker : workers_)
    for (const Fd* fd : {&worker->process.out, &worker->process.err, &worker->process.progress})
      if (*fd) fds.push_back({fd->get(), POLLIN, 0});
  int timeout = -1;
  if (kill_at_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*kill_at_ - Clock::now()).count();
    timeout = static_cast<int>(std::max<int64_t>(0, left));
  }
  ::poll(fds.data(), fds.size(), timeout);
}

int Agent::finish() {
  const std::optional<WorkerEnd> cause = cause_of(ends_);
  if (!cause) return 0;
  if (cause->exit_code == static_cast<int>(ExitCode::kStopped)) return cause->exit_code;
  const auto worker = std::find_if(workers_.begin(), workers_.end(),
                                   [&](const auto& candidate) { return candidate->rank == cause->rank; });
  const std::string who = fmt::format("rank {}: ", cause->rank);
  std::string message;
  if (const std::optional<std::string> error = board_->error_of(cause->rank)) {
    message = cut_termination_message(who + *error, /*keep_end=*/false);
  } else {
    const std::string how = cause->exit_code > kKilledBySignal
                                ? fmt::format("killed by signal {} ({})", cause->exit_code - kKilledBySignal,
                                              ::strsignal(cause->exit_code - kKilledBySignal))
                                : fmt::format("ended with exit code {}", cause->exit_code);
    say(who + how + ".");
    const std::string lines = (*worker)->err.tail(contract::kTerminationMessageMaxBytes - 256);
    message =
        cut_termination_message(who + how + (lines.empty() ? "." : "; its last words:\n" + lines), true);
  }
  if (const std::optional<std::string> path = termination_log_path(environment_))
    write_termination_message(*path, message);
  return cause->exit_code;
}

int Agent::run() {
  const JobEnvironment& job = options_.node.job;
  if (job.recovery_dir && is_finished(*job.recovery_dir, job.uid, job.attempt)) {
    say("An earlier attempt of this job has finished it; there is nothing left to do.");
    return 0;
  }
  if (const Result<void> ready = prepare(); !ready) return report_failure(ready.error(), environment_);
  handle_signals();
  if (stop_requested_) return static_cast<int>(ExitCode::kStopped);
  if (const Result<void> started = start_workers(); !started) {
    signal_running(SIGKILL);
    return report_failure(started.error(), environment_);
  }
  while (any_running()) {
    wait_for_event();
    for (const auto& worker : workers_) read_from(*worker);
    handle_signals();
    kill_when_due();
  }
  return finish();
}

}  // namespace

int run_agent(const AgentOptions& options, const EnvironmentLookup& environment) {
  return Agent(options, environment).run();
}

int report_failure(const Failure& failure, const EnvironmentLookup& environment) {
  say(failure.message);
  const std::optional<std::string> path = termination_log_path(environment);
  if (path && failure.code != ExitCode::kStopped)
    write_termination_message(*path, cut_termination_message(failure.message, /*keep_end=*/false));
  return static_cast<int>(failure.code);
}

}  // namespace coxswain
