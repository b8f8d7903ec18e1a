#include "operator/election/election_machine.h"

#include <fmt/chrono.h>

#include <utility>

#include "operator/client/metadata.h"

namespace coxswain {

namespace {

const auto kHolder = "/spec/holderIdentity"_json_pointer;
const auto kSeconds = "/spec/leaseDurationSeconds"_json_pointer;
const auto kTransitions = "/spec/leaseTransitions"_json_pointer;

// metav1.MicroTime.
std::string micro_time(TimePoint time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}000Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)), (time - seconds).count());
}

// Anybody may have written the lease: a field of another type counts as absent.
std::string holder_of(const Json& lease) {
  if (!lease.is_object() || !lease.contains(kHolder) || !lease.at(kHolder).is_string()) return "";
  return lease.at(kHolder).get<std::string>();
}

int64_t number_of(const Json& lease, const Json::json_pointer& field) {
  if (!lease.is_object() || !lease.contains(field) || !lease.at(field).is_number_integer()) return 0;
  return lease.at(field).get<int64_t>();
}

}  // namespace

ElectionMachine::ElectionMachine(ElectionSettings settings) : settings_(std::move(settings)) {}

SteadyTime ElectionMachine::leads_until() const {
  return leadership_ == Leadership::kLeading ? renewed_ + settings_.renew_deadline : SteadyTime{};
}

std::string ElectionMachine::holder() const {
  return holder_of(lease_);
}

bool ElectionMachine::held_by_other(SteadyTime now) const {
  const std::string holder = holder_of(lease_);
  if (holder.empty() || holder == settings_.identity) return false;
  const int64_t seconds = number_of(lease_, kSeconds);
  const Duration duration = seconds > 0 ? Duration(std::chrono::seconds(seconds)) : settings_.lease_duration;
  return now < changed_ + duration;
}

ElectionAction ElectionMachine::turn(SteadyTime now, TimePoint wall) {
  if (leadership_ == Leadership::kLeading && now >= leads_until()) leadership_ = Leadership::kLost;
  if (leadership_ == Leadership::kLost) return RestElection{SteadyTime::max()};
  if (now < due_) {
    return RestElection{leadership_ == Leadership::kLeading ? std::min(due_, leads_until()) : due_};
  }
  reading_ = !fresh_;
  if (reading_) return ReadLease{};
  return ask_for_lease(now, wall);
}

ElectionAction ElectionMachine::ask_for_lease(SteadyTime now, TimePoint wall) {
  asked_ = now;
  Json lease =
      missing_ ? Json{{"apiVersion", resources::kLeases.api_version()},
                      {"kind", resources::kLeases.kind},
                      {"metadata", {{"name", settings_.lease_name}, {"namespace", settings_.namespace_name}}}}
               : lease_;
  if (!lease["spec"].is_object()) lease["spec"] = Json::object();
  const std::string time = micro_time(wall);
  if (holder_of(lease) != settings_.identity) {
    lease[kTransitions] = missing_ ? 0 : number_of(lease, kTransitions) + 1;
    lease["spec"]["acquireTime"] = time;
  }
  lease[kHolder] = settings_.identity;
  lease[kSeconds] = std::chrono::floor<std::chrono::seconds>(settings_.lease_duration).count();
  lease["spec"]["renewTime"] = time;
  if (missing_) return CreateLease{std::move(lease)};
  return UpdateLease{std::move(lease)};
}

void ElectionMachine::take_note(Json lease, SteadyTime now) {
  if (metadata::uid(lease) != metadata::uid(lease_) ||
      metadata::resource_version(lease) != metadata::resource_version(lease_) || lease_.is_null()) {
    changed_ = now;
  }
  lease_ = std::move(lease);
  missing_ = false;
}

void ElectionMachine::handle(ApiResult<Json> answer, SteadyTime now, double jitter) {
  const auto more =
      Duration(static_cast<int64_t>(static_cast<double>(settings_.retry_period.count()) * jitter / 5));
  const Duration pause = settings_.retry_period + more;
  if (reading_) {
    handle_read(std::move(answer), now, pause);
  } else {
    handle_write(std::move(answer), now, pause);
  }
}

void ElectionMachine::handle_read(ApiResult<Json> answer, SteadyTime now, Duration pause) {
  if (answer) {
    take_note(std::move(*answer), now);
    if (held_by_other(now)) {
      // The lease is somebody else's now, and not since it ran out: only a person can have done that.
      if (leadership_ == Leadership::kLeading) leadership_ = Leadership::kLost;
      due_ = now + pause;
      return;
    }
    fresh_ = true;  // and due: it is free, or ours
  } else if (answer.error().not_found()) {
    missing_ = true;
    fresh_ = true;
  } else {
    due_ = now + pause;
  }
}

void ElectionMachine::handle_write(ApiResult<Json> answer, SteadyTime now, Duration pause) {
  due_ = now + pause;
  if (answer) {
    take_note(std::move(*answer), now);
    renewed_ = asked_;
    leadership_ = Leadership::kLeading;
    return;
  }
  // Somebody has written meanwhile, or it was our own write whose answer was lost: a look will tell.
  fresh_ = false;
}

std::optional<UpdateLease> ElectionMachine::release(TimePoint wall) {
  if (leadership_ != Leadership::kLeading || holder_of(lease_) != settings_.identity) return std::nullopt;
  leadership_ = Leadership::kLost;
  Json lease = lease_;
  lease[kHolder] = "";
  lease[kSeconds] = 1;
  lease["spec"]["renewTime"] = lease["spec"]["acquireTime"] = micro_time(wall);
  return UpdateLease{std::move(lease)};
}

}  // namespace coxswain
