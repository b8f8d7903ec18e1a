// Takes part in an election: an ElectionMachine and the requests it asks for.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>

#include "operator/client/api_client.h"
#include "operator/client/clock.h"
#include "operator/election/election_machine.h"

namespace coxswain {

struct ElectionClock {
  std::function<SteadyTime()> steady;
  Clock wall;

  static ElectionClock real();
};

// The ApiClient is used for nothing else, so that a busy one can't keep a renewal waiting; its requests must
// end well within renew_deadline. One thread calls step(), acquire(), hold() and release(); the rest is safe
// from any.
class LeaderElector {
 public:
  // check(settings) has passed.
  LeaderElector(ApiClient& api, ElectionSettings settings, ElectionClock clock = ElectionClock::real());

  // Does what is due, and returns when to call again.
  SteadyTime step();
  // Waits to become the leader. False: asked to stop.
  bool acquire(std::stop_token stop);
  // Renews until asked to stop. False: the lease is lost, and whoever leads by now must not be disturbed.
  bool hold(std::stop_token stop);
  // When all work has ended: the next candidate need not wait until the lease runs out.
  void release();

  // By the clock: false also in a process that was asleep for too long and doesn't know it yet.
  bool leads() const;
  // The API server has shown the lease: this candidate would take over.
  bool takes_part() const { return takes_part_; }
  Leadership leadership() const { return machine_.leadership(); }

 private:
  void run(ElectionAction action);
  void tell_holder();

  ApiClient& api_;
  const ElectionSettings settings_;
  const ElectionClock clock_;
  ElectionMachine machine_;
  std::string told_holder_;
  std::atomic<Duration::rep> leads_until_{0};  // since the steady clock's epoch
  std::atomic<bool> takes_part_{false};
};

}  // namespace coxswain
