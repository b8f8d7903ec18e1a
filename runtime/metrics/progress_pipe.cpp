#include "runtime/metrics/progress_pipe.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <nlohmann/json.hpp>

namespace coxswain {

namespace {

const char* phase_name(Phase phase) {
  switch (phase) {
    case Phase::kLoad:
      return "load";
    case Phase::kRendezvous:
      return "rendezvous";
    case Phase::kTrain:
      return "train";
    case Phase::kSave:
      return "save";
    case Phase::kDone:
      return "done";
  }
  return "";
}

// Bytes that aren't UTF-8 (a path in a message can hold any) are replaced, never thrown about.
std::string dump(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

ProgressPipe::ProgressPipe(std::optional<int> fd) : fd_(fd) {
  if (!fd_) return;
  std::signal(SIGPIPE, SIG_IGN);
  ::fcntl(*fd_, F_SETFL, ::fcntl(*fd_, F_GETFL) | O_NONBLOCK);
  ::fcntl(*fd_, F_SETFD, FD_CLOEXEC);
}

bool ProgressPipe::write_line(const std::string& line) const {
  ssize_t written = 0;
  do written = ::write(*fd_, line.data(), line.size());
  while (written < 0 && errno == EINTR);
  return written == static_cast<ssize_t>(line.size());
}

void ProgressPipe::phase(Phase phase) const {
  if (!fd_) return;
  write_line(dump({{"event", "phase"}, {"phase", phase_name(phase)}}) + "\n");
}

void ProgressPipe::step(const StepRecord& record, int64_t total_steps) const {
  if (!fd_) return;
  write_line(dump({{"event", "step"},
                   {"step", record.step},
                   {"total_steps", total_steps},
                   {"epoch", record.epoch},
                   {"loss", record.loss},
                   {"grad_norm", record.grad_norm},
                   {"learning_rate", record.learning_rate},
                   {"tokens_per_second", record.tokens_per_second}}) +
             "\n");
}

void ProgressPipe::checkpoint(int64_t step) const {
  if (!fd_) return;
  write_line(dump({{"event", "checkpoint"}, {"step", step}}) + "\n");
}

void ProgressPipe::error(contract::ExitCode exit_code, const std::string& message) const {
  if (!fd_) return;
  std::string text = message;
  std::string line;
  do {
    line = dump({{"event", "error"}, {"exit_code", static_cast<int>(exit_code)}, {"message", text}}) + "\n";
    // In proportion, for escapes make a line longer than its text.
    if (line.size() > PIPE_BUF) text.resize(text.size() * PIPE_BUF / line.size());
  } while (line.size() > PIPE_BUF);
  if (write_line(line) || errno != EAGAIN) return;
  pollfd room{*fd_, POLLOUT, 0};
  if (::poll(&room, 1, 1000) > 0) write_line(line);
}

}  // namespace coxswain
