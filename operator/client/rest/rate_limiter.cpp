#include "operator/client/rest/rate_limiter.h"

#include <algorithm>

namespace coxswain {

RateLimiter::RateLimiter(double queries_per_second, int burst)
    : rate_(queries_per_second), burst_(std::max(burst, 1)), tokens_(burst_) {}

RateLimiter::Duration RateLimiter::reserve(TimePoint now) {
  if (rate_ <= 0) return Duration::zero();
  std::lock_guard lock(mutex_);
  if (now > filled_at_) {
    const std::chrono::duration<double> passed = now - filled_at_;
    tokens_ = std::min(burst_, tokens_ + passed.count() * rate_);
    filled_at_ = now;
  }
  tokens_ -= 1;
  if (tokens_ >= 0) return Duration::zero();
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(-tokens_ / rate_));
}

}  // namespace coxswain
