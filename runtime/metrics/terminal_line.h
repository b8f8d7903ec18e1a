// The one line by which a person watches training.
#pragma once

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>

#include "runtime/metrics/step_record.h"

namespace coxswain {

// The line without colours or newline: " 12/200 [==>       ]  6%  loss 2.3412  lr 2.9e-05 …". `columns` is
// the width of the terminal; 0: no progress bar. seconds_left < 0: not known.
std::string format_progress_line(const StepRecord& record, int64_t total_steps, double seconds_left,
                                 int columns);

// On a terminal the line is rewritten at every step; otherwise a plain line is printed every `logging_steps`
// steps, at the first and at the last. Anything else that is printed meanwhile goes through `message`, which
// keeps the line whole.
class TerminalLine {
 public:
  using Clock = std::function<std::chrono::steady_clock::time_point()>;

  // `first_step`: steps done before this run (resume). `out` isn't owned. logging_steps ≥ 1.
  TerminalLine(std::FILE* out, int64_t first_step, int64_t total_steps, int64_t logging_steps,
               Clock clock = std::chrono::steady_clock::now);
  ~TerminalLine();

  void step(const StepRecord& record);
  void message(const std::string& text);
  void finish();

 private:
  double seconds_left(int64_t step) const;

  std::FILE* out_;
  bool tty_;
  bool line_open_ = false;
  int64_t first_step_;
  int64_t total_steps_;
  int64_t logging_steps_;
  Clock clock_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace coxswain
