// Elapsed time, for step times and recovery intervals.
#pragma once

#include <chrono>

namespace coxswain {

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

// Elapses `seconds` after it was made or restarted; never, where `seconds` is 0 or less.
class IntervalTimer {
 public:
  explicit IntervalTimer(double seconds) : seconds_(seconds) {}

  bool elapsed() const { return seconds_ > 0 && watch_.seconds() >= seconds_; }
  void restart() { watch_ = Stopwatch(); }

 private:
  double seconds_;
  Stopwatch watch_;
};

inline double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace coxswain
