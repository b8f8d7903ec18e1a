// Who may work: a lease (coordination.k8s.io/v1) and the rules by which candidates take it, keep it and lose
// it, as a pure state machine with the semantics of client-go's leaderelection. A driver asks it what to do
// (turn), does that, and tells it what came (handle).
//
// Note [One leader]: a candidate takes a lease over only when it has seen it unchanged for as long as its
// holder may believe in it (its own lease_duration, or what the lease says where that is longer), by its own
// clock; what time others write into it is for people. A leader counts from the moment at which it *asked*
// for its last renewal, which is before anybody can have seen it, and only for renew_deadline, which is
// shorter. So at no time do two believe that they lead, whatever their wall clocks say, as long as their own
// clocks run at about one speed. A person who deletes the lease, empties it or shortens it changes nothing of
// that: a lease without a holder that was not handed over is waited for as well, and in place of one that
// vanished a candidate puts an empty one, which its leader, if it lives, takes back. What can't be ruled out:
// somebody names another holder by hand, or a candidate starts (and so knows of no lease) in the moment
// between a lease's deletion and its leader's next renewal; then there may be two until that renewal.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>

#include "operator/client/api_client.h"
#include "operator/election/election_settings.h"

namespace coxswain {

using SteadyTime = std::chrono::time_point<std::chrono::steady_clock, Duration>;

struct ReadLease {};
struct CreateLease {
  Json lease;
};
struct UpdateLease {
  Json lease;  // with the resourceVersion that was read: 409 if anyone has written since
};
struct RestElection {
  SteadyTime until;
};
using ElectionAction = std::variant<ReadLease, CreateLease, UpdateLease, RestElection>;

enum class Leadership { kWaiting, kLeading, kLost };  // lost is for ever

class ElectionMachine {
 public:
  explicit ElectionMachine(ElectionSettings settings);

  // `wall` is only written down, for people. An action other than RestElection must be carried out and its
  // answer handled before the next turn.
  ElectionAction turn(SteadyTime now, TimePoint wall);
  // The answer to the last action; `jitter` from [0, 1).
  void handle(ApiResult<Json> answer, SteadyTime now, double jitter);

  Leadership leadership() const { return leadership_; }
  // Until when it leads, unless it renews; the epoch while it doesn't lead.
  SteadyTime leads_until() const;
  // Who holds the lease, as last seen; "" nobody.
  std::string holder() const;
  // The lease has been read or written: the API server answers.
  bool has_seen_lease() const { return seen_; }

  // Leads no more. False: it didn't.
  bool step_down();
  // After that: what hands `lease`, as it is now, over at once; none where it isn't ours.
  std::optional<UpdateLease> handover(Json lease, TimePoint wall) const;

 private:
  ElectionAction ask_for_lease(SteadyTime now, TimePoint wall);
  void take_note(Json lease, SteadyTime now);
  void handle_read(ApiResult<Json> answer, SteadyTime now, Duration pause);
  void handle_write(ApiResult<Json> answer, SteadyTime now, Duration pause);

  ElectionSettings settings_;
  Leadership leadership_ = Leadership::kWaiting;
  Json lease_;                 // as last seen; null: none yet
  SteadyTime others_until_{};  // until when another one may believe that it leads
  SteadyTime asked_{};         // when the write under way was begun
  SteadyTime renewed_{};       // when the last write that succeeded was begun
  SteadyTime due_{};
  bool fresh_ = false;    // lease_ is worth writing over
  bool missing_ = false;  // there is none
  bool seen_ = false;     // there has been one
  bool placing_ = false;  // the write under way makes an empty lease
  bool hurried_ = false;  // looked again at once since the last write that succeeded; once is enough
  bool reading_ = false;  // the action under way is a read
};

}  // namespace coxswain
