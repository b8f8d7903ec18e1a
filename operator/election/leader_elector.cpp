#include "operator/election/leader_elector.h"

#include <spdlog/spdlog.h>
#include <time.h>

#include <algorithm>
#include <random>

namespace coxswain {

namespace {

constexpr int kReleaseTries = 3;

double random_jitter() {
  thread_local std::mt19937_64 engine{std::random_device{}()};
  return std::uniform_real_distribution<double>(0, 1)(engine);
}

// CLOCK_MONOTONIC stands still while a machine is suspended: whoever wakes up would think that it still
// leads.
SteadyTime boot_time() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return SteadyTime(std::chrono::duration_cast<Duration>(std::chrono::seconds(now.tv_sec) +
                                                         std::chrono::nanoseconds(now.tv_nsec)));
}

// Not more than a while: the clock may have gone on otherwise than the wait.
Duration wait_until(SteadyTime until, SteadyTime now) {
  constexpr Duration kLongest = std::chrono::seconds(1);
  return until - now < kLongest ? std::max(until - now, Duration(0)) : kLongest;
}

}  // namespace

ElectionClock ElectionClock::real() {
  return {boot_time, system_time};
}

LeaderElector::LeaderElector(ApiClient& api, ElectionSettings settings, ElectionClock clock)
    : api_(api), settings_(settings), clock_(std::move(clock)), machine_(std::move(settings)) {}

LeaderElector::~LeaderElector() = default;

SteadyTime LeaderElector::step() {
  for (;;) {
    ElectionAction action = machine_.turn(clock_.steady(), clock_.wall());
    if (const auto* rest = std::get_if<RestElection>(&action)) {
      publish();
      return rest->until;
    }
    run(std::move(action));
    publish();
    tell_holder();
  }
}

void LeaderElector::publish() {
  {
    const std::lock_guard lock(mutex_);
    leads_until_ = machine_.leads_until().time_since_epoch().count();
    leadership_ = machine_.leadership();
    takes_part_ = machine_.has_seen_lease();
  }
  changed_.notify_all();
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
  const bool expected = answer || answer.error().not_found() || answer.error().code == 409;
  const std::string trouble = expected ? "" : answer.error().message;
  if (trouble != told_trouble_ && !expected)
    spdlog::warn("lease {}/{}: {} {}", ns, settings_.lease_name, answer.error().code, trouble);
  told_trouble_ = trouble;
  machine_.handle(std::move(answer), clock_.steady(), random_jitter());
}

void LeaderElector::tell_holder() {
  const std::string holder = machine_.holder();
  if (holder == told_holder_) return;
  told_holder_ = holder;
  if (holder == settings_.identity) {
    spdlog::info("leading, as {}", holder);
  } else if (!holder.empty()) {
    spdlog::info("the leader is {}", holder);
  }
}

bool LeaderElector::acquire(std::stop_token stop) {
  while (!stop.stop_requested()) {
    const SteadyTime next = step();
    if (leadership_ == Leadership::kLeading) return true;
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, wait_until(next, clock_.steady()), [] { return false; });
  }
  return false;
}

void LeaderElector::renew(std::stop_token stop) {
  while (!stop.stop_requested() && leadership_ != Leadership::kLost) {
    const SteadyTime next = step();
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, wait_until(next, clock_.steady()), [] { return false; });
  }
}

bool LeaderElector::hold(std::stop_token stop) {
  renewing_ = std::jthread([this](std::stop_token end) { renew(end); });
  while (leads() && !stop.stop_requested()) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, wait_until(leads_until(), clock_.steady()), [this] { return !leads(); });
  }
  // A thread that waits for an answer is left behind: what matters now is to end.
  if (!leads()) return false;
  renewing_.request_stop();
  renewing_.join();
  return leads();
}

void LeaderElector::release() {
  const bool led = machine_.step_down();
  publish();
  if (!led) return;
  std::string why = "others keep writing it";
  for (int i = 0; i < kReleaseTries; ++i) {
    auto lease = api_.get(resources::kLeases, settings_.namespace_name, settings_.lease_name);
    if (!lease) {
      why = lease.error().message;
      break;
    }
    const auto handover = machine_.handover(std::move(*lease), clock_.wall());
    if (!handover) return;
    auto answer = api_.update(resources::kLeases, settings_.namespace_name, handover->lease, {});
    if (answer) return;
    why = answer.error().message;
    if (!answer.error().conflict()) break;
  }
  spdlog::warn("lease {}/{} could not be handed over: {}", settings_.namespace_name, settings_.lease_name,
               why);
}

}  // namespace coxswain
