#include "operator/election/leader_elector.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <condition_variable>
#include <random>

namespace coxswain {

namespace {

double random_jitter() {
  thread_local std::mt19937_64 engine{std::random_device{}()};
  return std::uniform_real_distribution<double>(0, 1)(engine);
}

// Until then or until asked to stop.
void sleep_until(SteadyTime until, SteadyTime now, std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any woken;
  std::unique_lock lock(mutex);
  const Duration wait = std::clamp<Duration>(until == SteadyTime::max() ? Duration::max() : until - now,
                                             Duration(0), std::chrono::seconds(10));
  woken.wait_for(lock, stop, wait, [] { return false; });
}

}  // namespace

ElectionClock ElectionClock::real() {
  return {[] { return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now()); },
          system_time};
}

LeaderElector::LeaderElector(ApiClient& api, ElectionSettings settings, ElectionClock clock)
    : api_(api), settings_(settings), clock_(std::move(clock)), machine_(std::move(settings)) {}

SteadyTime LeaderElector::step() {
  for (;;) {
    ElectionAction action = machine_.turn(clock_.steady(), clock_.wall());
    if (const auto* rest = std::get_if<RestElection>(&action)) {
      leads_until_ = machine_.leads_until().time_since_epoch().count();
      return rest->until;
    }
    run(std::move(action));
    leads_until_ = machine_.leads_until().time_since_epoch().count();
    takes_part_ = machine_.has_seen_lease();
    tell_holder();
  }
}

void LeaderElector::run(ElectionAction action) {
  const std::string& ns = settings_.namespace_name;
  ApiResult<Json> answer;
  if (const auto* create = std::get_if<CreateLease>(&action)) {
    answer = api_.create(resources::kLeases, ns, create->lease, {});
  } else if (const auto* update = std::get_if<UpdateLease>(&action)) {
    answer = api_.update(resources::kLeases, ns, update->lease, {});
  } else {
    answer = api_.get(resources::kLeases, ns, settings_.lease_name);
  }
  if (!answer && !answer.error().not_found() && answer.error().code != 409) {
    spdlog::warn("lease {}/{}: {} {}", ns, settings_.lease_name, answer.error().code, answer.error().message);
  }
  machine_.handle(std::move(answer), clock_.steady(), random_jitter());
}

void LeaderElector::tell_holder() {
  const std::string holder = machine_.holder();
  if (holder == told_holder_) return;
  told_holder_ = holder;
  if (holder == settings_.identity) {
    spdlog::info("leading, as {}", holder);
  } else if (!holder.empty()) {
    spdlog::info("standing by; the leader is {}", holder);
  }
}

bool LeaderElector::acquire(std::stop_token stop) {
  while (!stop.stop_requested()) {
    const SteadyTime next = step();
    if (machine_.leadership() == Leadership::kLeading) return true;
    sleep_until(next, clock_.steady(), stop);
  }
  return false;
}

bool LeaderElector::hold(std::stop_token stop) {
  while (!stop.stop_requested()) {
    const SteadyTime next = step();
    if (machine_.leadership() == Leadership::kLost) return false;
    sleep_until(next, clock_.steady(), stop);
  }
  return machine_.leadership() == Leadership::kLeading;
}

void LeaderElector::release() {
  const auto handover = machine_.release(clock_.wall());
  leads_until_ = 0;
  if (!handover) return;
  auto answer = api_.update(resources::kLeases, settings_.namespace_name, handover->lease, {});
  if (!answer) spdlog::warn("the lease could not be handed over: {}", answer.error().message);
}

bool LeaderElector::leads() const {
  return clock_.steady().time_since_epoch().count() < leads_until_;
}

}  // namespace coxswain
