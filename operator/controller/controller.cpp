#include "operator/controller/controller.h"

#include <algorithm>
#include <exception>

#include "operator/api/parse.h"
#include "operator/controller/wake_rules.h"

namespace coxswain {

namespace {

// Passes in one step(): enough for every job of a large cluster, few enough that a job that keeps waking
// itself cannot hold the thread.
constexpr int kPassesPerStep = 10000;

ControllerObserver& no_observer() {
  static ControllerObserver none;
  return none;
}

}  // namespace

Controller::Controller(ApiClient& api, ProgressReader* progress, Clock clock, ControllerOptions options)
    : api_(api),
      progress_(progress),
      clock_(std::move(clock)),
      options_(std::move(options)),
      observer_(options_.observer == nullptr ? no_observer() : *options_.observer),
      queue_(clock_, {options_.retry_base, options_.retry_max}, &observer_),
      asks_(clock_),
      events_(api, options_.events),
      view_(api, {options_.namespaces, options_.watch_nodes, options_.watch}, clock_,
            {.on_job = [this](const Json& before, const Json& after) { on_job(before, after); },
             .on_child = [this](const Json& before, const Json& after) { on_child(before, after); },
             .on_node = [this](const Json& before, const Json& after) { on_node(before, after); },
             .on_ready = {}}) {}

// --- What wakes it

void Controller::on_job(const Json& before, const Json& after) {
  observer_.job_changed(before, after, clock_());
  if (job_needs_pass(before, after)) queue_.add(metadata::key(after.is_null() ? before : after));
}

void Controller::on_child(const Json& before, const Json& after) {
  if (!child_needs_pass(before, after)) return;
  for (const Json* object : {&before, &after}) {
    if (const auto job = controlling_job(*object)) queue_.add_at(*job, clock_() + options_.child_batch);
  }
}

void Controller::on_node(const Json& before, const Json& after) {
  if (!child_needs_pass(before, after)) return;
  const std::string node = metadata::name(after.is_null() ? before : after);
  for (const auto& pod : view_.pods_on_node(node)) {
    if (const auto job = controlling_job(*pod)) queue_.add_at(*job, clock_() + options_.child_batch);
  }
}

// --- The loop, in both forms

TimePoint Controller::step() {
  TimePoint next = TimePoint::max();
  for (int passes = 0; passes < kPassesPerStep; ++passes) {
    next = view_.poll();
    // A decision on half a picture would take pods that are only not yet listed for lost ones.
    if (!view_.synced()) return next;
    if (const auto key = queue_.try_get()) {
      try_pass(*key);
      events_.flush();
      queue_.done(*key);
    } else if (const auto asked = asks_.try_get()) {
      try_ask(*asked);
      asks_.done(*asked);
    } else {
      break;
    }
  }
  return std::min({next, queue_.next_due(), asks_.next_due()});
}

void Controller::run(std::stop_token stop) {
  parallel_writes_ = options_.parallel_writes;
  writers_.start(parallel_writes_ - 1);  // each worker writes too
  std::vector<std::jthread> watches = view_.start();
  wait_until_synced(stop);
  std::jthread events([this](std::stop_token enough) { events_.run(std::move(enough)); });
  std::vector<std::jthread> workers;
  if (!stop.stop_requested()) {
    for (int i = 0; i < options_.workers; ++i) workers.emplace_back([this] { work(); });
    for (int i = 0; i < options_.askers && progress_ != nullptr; ++i) {
      workers.emplace_back([this] { ask(); });
    }
  }
  {
    std::unique_lock lock(mutex_);
    stopped_.wait(lock, stop, [] { return false; });
  }
  asks_.shut_down();
  asks_.drop_waiting();
  queue_.shut_down();
  if (!queue_.wait_until_drained(options_.drain_limit)) queue_.drop_waiting();
  workers.clear();
  events.request_stop();
  events.join();
  // The watches last until here, so that the last passes still see what they have done.
  for (std::jthread& watch : watches) watch.request_stop();
}

void Controller::work() {
  while (const auto key = queue_.get()) {
    try_pass(*key);
    queue_.done(*key);
  }
}

void Controller::ask() {
  while (const auto key = asks_.get()) {
    try_ask(*key);
    asks_.done(*key);
  }
}

void Controller::wait_until_synced(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested() && !view_.synced()) {
    stopped_.wait_for(lock, stop, std::chrono::milliseconds(10), [] { return false; });
  }
}

std::shared_ptr<Controller::JobState> Controller::state_of(const Key& key, const std::string& uid) {
  std::lock_guard lock(mutex_);
  auto& state = states_[key];
  // Another job of that name: what was learnt of the old one is not its.
  if (state == nullptr || state->uid != uid) {
    state = std::make_shared<JobState>();
    state->uid = uid;
  }
  return state;
}

void Controller::forget(const Key& key) {
  queue_.forget(key);
  std::lock_guard lock(mutex_);
  states_.erase(key);
}

}  // namespace coxswain
