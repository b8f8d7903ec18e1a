#include "cli/coxswain/console.h"

#include <spdlog/fmt/fmt.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace coxswain {

namespace {

constexpr char kOurPrefix[] = "coxswain | ";

std::string duration_text(Duration left) {
  const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(left).count();
  if (seconds >= 3600) return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
  return fmt::format("{}:{:02}", seconds / 60, seconds % 60);
}

std::string bar(double share) {
  constexpr int kWidth = 20;
  const int filled = std::clamp(static_cast<int>(share * kWidth), 0, kWidth);
  return "[" + std::string(static_cast<size_t>(filled), '#') +
         std::string(static_cast<size_t>(kWidth - filled), '.') + "]";
}

size_t columns_of(std::FILE* out) {
  winsize size{};
  return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string phase_text(const TrainingJobStatus& status) {
  std::string text = to_string(status.phase);
  if (status.phase == Phase::kRunning || status.phase == Phase::kStarting) {
    text += fmt::format(", {} of {} pods ready", status.nodes.ready, status.nodes.desired);
    if (status.attempt > 0) text += fmt::format(", attempt {}", status.attempt);
  }
  for (const char* type : {kConditionFailed, kConditionStalled}) {
    const Condition* condition = find_condition(status, type);
    if (condition == nullptr || !condition->status) continue;
    return text + fmt::format(" ({}): {}", condition->reason, condition->message);
  }
  return text;
}

std::string failure_text(const LastFailure& failure) {
  return fmt::format("attempt {} failed ({}): {}", failure.attempt, failure.cause, failure.message);
}

}  // namespace

std::string progress_text(const TrainingJobStatus& status, TimePoint now, size_t columns) {
  if (!status.training || status.phase != Phase::kRunning) return "";
  const TrainingStatus& training = *status.training;
  std::string text = fmt::format("step {}", training.step);
  if (training.total_steps && *training.total_steps > 0) {
    const double share = static_cast<double>(training.step) / static_cast<double>(*training.total_steps);
    text =
        fmt::format("{} {:3.0f}%  step {}/{}", bar(share), share * 100, training.step, *training.total_steps);
  }
  if (!training.loss.empty()) text += "  loss " + training.loss;
  if (!training.tokens_per_second.empty()) text += "  " + training.tokens_per_second + " tokens/s";
  if (training.estimated_completion_time && *training.estimated_completion_time > now) {
    text += "  ETA " + duration_text(*training.estimated_completion_time - now);
  }
  return text.substr(0, columns);
}

Console::Console(std::FILE* out) : out_(out), terminal_(isatty(fileno(out)) != 0) {}

Console::~Console() {
  clear_progress();
}

void Console::clear_progress() {
  if (!drawn_) return;
  std::fputs("\r\033[K", out_);
  drawn_ = false;
}

void Console::draw_progress() {
  if (!terminal_ || progress_.empty()) return;
  fmt::print(out_, "\r\033[K{}", progress_);
  drawn_ = true;
}

void Console::print(const std::string& line) {
  clear_progress();
  fmt::print(out_, "{}\n", line);
  draw_progress();
  std::fflush(out_);
}

void Console::log(const std::string& pod, const std::string& line) {
  print(pod + " | " + line);
}

void Console::say(const std::string& sentence) {
  print(kOurPrefix + sentence);
}

void Console::show(const TrainingJobStatus& status, TimePoint now) {
  const bool first = !shown_.has_value();
  const TrainingJobStatus before = shown_.value_or(TrainingJobStatus{});
  const std::string progress = progress_text(status, now, columns_of(out_) - 1);
  const bool moved = progress != progress_;
  progress_ = progress;
  shown_ = status;
  if (!first && status.last_failure && status.last_failure != before.last_failure) {
    say(failure_text(*status.last_failure));
  }
  if (first || phase_text(status) != phase_text(before)) say(phase_text(status));
  if (!moved || !terminal_) return;
  clear_progress();
  draw_progress();
  std::fflush(out_);
}

}  // namespace coxswain
