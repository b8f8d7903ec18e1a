// Who may work: a lease (coordination.k8s.io/v1) and the rules by which candidates take it, keep it and lose
// it, as a pure state machine with the semantics of client-go's leaderelection. A driver asks it what to do
// (turn), does that, and tells it what came (handle).
//
// Note [One leader]: a candidate takes a lease over only when it has seen it unchanged for the whole
// lease_duration, by its own steady clock; what time others write into it is for people. A leader counts from
// the moment at which it *asked* for its last renewal, which is before anybody can have seen it, and only for
// renew_deadline, which is shorter. So at no time do two believe that they lead, whatever their wall clocks
// say, as long as their steady clocks run at about one speed.
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
  bool has_seen_lease() const { return !lease_.is_null(); }

  // What hands the lease over at once; none where it isn't ours.
  std::optional<UpdateLease> release(TimePoint wall);

 private:
  bool held_by_other(SteadyTime now) const;
  ElectionAction ask_for_lease(SteadyTime now, TimePoint wall);
  void take_note(Json lease, SteadyTime now);
  void handle_read(ApiResult<Json> answer, SteadyTime now, Duration pause);
  void handle_write(ApiResult<Json> answer, SteadyTime now, Duration pause);

  ElectionSettings settings_;
  Leadership leadership_ = Leadership::kWaiting;
  Json lease_;            // as last seen; null: none yet
  SteadyTime changed_{};  // when it was first seen as it is
  SteadyTime asked_{};    // when the write under way was begun
  SteadyTime renewed_{};  // when the last write that succeeded was begun
  SteadyTime due_{};
  bool fresh_ = false;    // lease_ is worth writing over
  bool missing_ = false;  // there is none
  bool reading_ = false;  // the action under way is a read
};

}  // namespace coxswain
