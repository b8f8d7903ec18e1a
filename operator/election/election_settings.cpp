#include "operator/election/election_settings.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <random>

namespace coxswain {

namespace {

std::string shown(Duration duration) {
  const int64_t ms = duration.count();
  return ms % 1000 == 0 ? fmt::format("{}s", ms / 1000) : fmt::format("{}ms", ms);
}

}  // namespace

Result<void> check(const ElectionSettings& settings) {
  if (settings.lease_duration < std::chrono::seconds(1)) {
    return bad_input(
        fmt::format("--leader-election-lease-duration is {}; it must be 1s or more, since a lease counts "
                    "whole seconds.",
                    shown(settings.lease_duration)));
  }
  if (settings.lease_duration <= settings.renew_deadline) {
    return bad_input(
        fmt::format("--leader-election-lease-duration is {}; it must be longer than "
                    "--leader-election-renew-deadline, {}, so that a leader gives up before another "
                    "one takes over.",
                    shown(settings.lease_duration), shown(settings.renew_deadline)));
  }
  // The jitter is a fifth.
  if (settings.renew_deadline * 10 <= settings.retry_period * 12) {
    return bad_input(
        fmt::format("--leader-election-renew-deadline is {}; it must be more than 1.2 times "
                    "--leader-election-retry-period, {}, so that there is time for a second try.",
                    shown(settings.renew_deadline), shown(settings.retry_period)));
  }
  return {};
}

std::string make_identity() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  std::random_device random;
  return fmt::format("{}_{:08x}{:08x}", host.data(), random(), random());
}

}  // namespace coxswain
