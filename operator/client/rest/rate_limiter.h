// The client's own limit on its requests: a token bucket.
#pragma once

#include <chrono>
#include <mutex>

namespace coxswain {

// Thread-safe. Requests are let through in the order in which they ask.
class RateLimiter {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  // queries_per_second <= 0: no limit. burst: how many may go at once after a quiet time, at least 1.
  RateLimiter(double queries_per_second, int burst);

  // Takes a token; how long to wait before using it.
  Duration reserve(TimePoint now);

 private:
  const double rate_;
  const double burst_;
  std::mutex mutex_;
  double tokens_;  // negative: promised to waiters
  TimePoint filled_at_{};
};

}  // namespace coxswain
