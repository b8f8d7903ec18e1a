#include "runtime/metrics/terminal_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace coxswain {

namespace {

std::string format_duration(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 3600) return fmt::format("{:02}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string bar(double done, int width) {
  const int filled = std::clamp(static_cast<int>(done * width), 0, width);
  std::string text(static_cast<size_t>(filled), '=');
  if (filled > 0 && filled < width) text.back() = '>';
  return "[" + text + std::string(static_cast<size_t>(width - filled), ' ') + "]";
}

int columns_of(std::FILE* out) {
  winsize size{};
  if (::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 100;
}

}  // namespace

std::string format_progress_line(const StepRecord& record, int64_t total_steps, double seconds_left,
                                 int columns) {
  const double done =
      total_steps > 0 ? static_cast<double>(record.step) / static_cast<double>(total_steps) : 0;
  const std::string numbers = fmt::format(
      "loss {:.4f}  lr {:.2e}  grad_norm {:.3f}  {:.0f} tok/s  ETA {}", record.loss, record.learning_rate,
      record.grad_norm, record.tokens_per_second, seconds_left < 0 ? "--:--" : format_duration(seconds_left));
  const std::string count = fmt::format("step {}/{}", record.step, total_steps);
  constexpr int kNarrowestBar = 8;
  constexpr int kWidestBar = 24;
  const int room = columns - static_cast<int>(numbers.size() + count.size()) - 12;
  const std::string progress =
      columns > 0 && room >= kNarrowestBar ? bar(done, std::min(room, kWidestBar)) + " " : "";
  std::string line = fmt::format("{} {}{:3.0f}%  {}", count, progress, 100 * done, numbers);
  if (columns > 0 && static_cast<int>(line.size()) >= columns) line.resize(static_cast<size_t>(columns - 1));
  return line;
}

TerminalLine::TerminalLine(std::FILE* out, int64_t first_step, int64_t total_steps, int64_t logging_steps,
                           Clock clock)
    : out_(out),
      tty_(::isatty(::fileno(out)) == 1),
      first_step_(first_step),
      total_steps_(total_steps),
      logging_steps_(logging_steps),
      clock_(std::move(clock)),
      start_(clock_()) {}

TerminalLine::~TerminalLine() {
  finish();
}

double TerminalLine::seconds_left(int64_t step) const {
  if (step <= first_step_) return -1;
  const double spent = std::chrono::duration<double>(clock_() - start_).count();
  return spent / static_cast<double>(step - first_step_) *
         static_cast<double>(std::max<int64_t>(0, total_steps_ - step));
}

void TerminalLine::step(const StepRecord& record) {
  const double left = seconds_left(record.step);
  if (tty_) {
    const std::string line = format_progress_line(record, total_steps_, left, columns_of(out_));
    std::fprintf(out_, "\r%s\x1b[K", line.c_str());
    line_open_ = true;
  } else if (record.step == first_step_ + 1 || record.step % logging_steps_ == 0 ||
             record.step >= total_steps_) {
    std::fprintf(out_, "%s\n", format_progress_line(record, total_steps_, left, 0).c_str());
  }
  std::fflush(out_);
}

void TerminalLine::message(const std::string& text) {
  if (line_open_) std::fputs("\r\x1b[K", out_);
  line_open_ = false;
  std::fprintf(out_, "%s\n", text.c_str());
  std::fflush(out_);
}

void TerminalLine::finish() {
  if (line_open_) std::fputc('\n', out_);
  line_open_ = false;
  std::fflush(out_);
}

}  // namespace coxswain
