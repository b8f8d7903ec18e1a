// Takes part in an election: an ElectionMachine and the requests it asks for.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "operator/client/api_client.h"
#include "operator/client/clock.h"
#include "operator/election/election_machine.h"

namespace coxswain {

struct ElectionClock {
  // Never set, and goes on while the machine is suspended.
  std::function<SteadyTime()> steady;
  Clock wall;

  static ElectionClock real();
};

// The ApiClient is used for nothing else, so that a busy one can't keep a renewal waiting, and must outlive
// this; its requests should end within a part of renew_deadline. One thread calls step(), acquire(), hold()
// and release(); the rest is safe from any.
class LeaderElector {
 public:
  // check(settings) has passed.
  LeaderElector(ApiClient& api, ElectionSettings settings, ElectionClock clock = ElectionClock::real());
  // Waits for a request that is under way.
  ~LeaderElector();

  // Does what is due, and returns when to call again.
  SteadyTime step();
  // Waits to become the leader. False: asked to stop.
  bool acquire(std::stop_token stop);
  // Renews until asked to stop. False: the right to write has ended, and it says so on time, even while a
  // renewal is still waiting for its answer: end the program without waiting for anything (std::_Exit).
  bool hold(std::stop_token stop);
  // When all work has ended: the next candidate need not wait until the lease runs out.
  void release();

  // By the clock: false also in a process that was asleep for too long and doesn't know it yet.
  bool leads() const { return clock_.steady() < leads_until(); }
  // The epoch while it doesn't lead.
  SteadyTime leads_until() const { return SteadyTime(Duration(leads_until_.load())); }
  // The API server has shown the lease: this candidate would take over.
  bool takes_part() const { return takes_part_; }
  Leadership leadership() const { return leadership_; }

 private:
  void run(ElectionAction action);
  void publish();
  void tell_holder();
  void renew(std::stop_token stop);

  ApiClient& api_;
  const ElectionSettings settings_;
  const ElectionClock clock_;
  ElectionMachine machine_;  // of the thread that steps
  std::string told_holder_;
  std::string told_trouble_;
  std::atomic<Duration::rep> leads_until_{0};  // since the steady clock's epoch
  std::atomic<bool> takes_part_{false};
  std::atomic<Leadership> leadership_{Leadership::kWaiting};
  std::mutex mutex_;  // to wait with
  std::condition_variable_any changed_;
  std::jthread renewing_;
};

}  // namespace coxswain
