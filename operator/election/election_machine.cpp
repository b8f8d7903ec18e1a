#include "operator/election/election_machine.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "operator/api/json_input.h"
#include "operator/client/metadata.h"

namespace coxswain {

namespace {

constexpr int64_t kReleasedSeconds = 1;          // what client-go writes into a lease that it hands over
constexpr int64_t kLongestSeconds = 24 * 3600L;  // nobody is waited for longer, whatever was written

// metav1.MicroTime.
std::string micro_time(TimePoint time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}000Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)), (time - seconds).count());
}

// Anybody may have written the lease: a field of another type counts as absent.
const Json& spec_field(const Json& lease, const char* field) {
  static const Json null;
  if (!lease.is_object() || !lease.contains("spec") || !lease["spec"].is_object()) return null;
  const auto found = lease["spec"].find(field);
  return found == lease["spec"].end() ? null : *found;
}

std::string holder_of(const Json& lease) {
  const Json& holder = spec_field(lease, "holderIdentity");
  return holder.is_string() ? holder.get<std::string>() : "";
}

int64_t seconds_of(const Json& lease) {
  return std::clamp<int64_t>(whole_number(spec_field(lease, "leaseDurationSeconds")).value_or(0), 0,
                             kLongestSeconds);
}

int64_t transitions_of(const Json& lease) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() - 1;
  return std::clamp<int64_t>(whole_number(spec_field(lease, "leaseTransitions")).value_or(0), 0, kMost);
}

bool is_handed_over(const Json& lease) {
  return holder_of(lease).empty() && seconds_of(lease) == kReleasedSeconds;
}

}  // namespace

ElectionMachine::ElectionMachine(ElectionSettings settings) : settings_(std::move(settings)) {}

SteadyTime ElectionMachine::leads_until() const {
  return leadership_ == Leadership::kLeading ? renewed_ + settings_.renew_deadline : SteadyTime{};
}

std::string ElectionMachine::holder() const {
  return holder_of(lease_);
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
  lease["spec"]["leaseDurationSeconds"] =
      std::chrono::ceil<std::chrono::seconds>(settings_.lease_duration).count();
  placing_ = missing_ && seen_ && leadership_ != Leadership::kLeading;
  if (placing_) return CreateLease{std::move(lease)};
  const std::string time = micro_time(wall);
  if (holder_of(lease) != settings_.identity) {
    lease["spec"]["leaseTransitions"] = missing_ ? 0 : transitions_of(lease) + 1;
    lease["spec"]["acquireTime"] = time;
  }
  lease["spec"]["holderIdentity"] = settings_.identity;
  lease["spec"]["renewTime"] = time;
  if (missing_) return CreateLease{std::move(lease)};
  return UpdateLease{std::move(lease)};
}

void ElectionMachine::take_note(Json lease, SteadyTime now) {
  const bool known = std::exchange(seen_, true);
  const bool changed = lease_.is_null() || metadata::uid(lease) != metadata::uid(lease_) ||
                       metadata::resource_version(lease) != metadata::resource_version(lease_);
  const std::string holder = holder_of(lease);
  if (is_handed_over(lease)) {
    others_until_ = now;
  } else if (changed && holder != settings_.identity && (known || !holder.empty())) {
    // Also where it names nobody any more: its holder hasn't done that, and may not know it yet.
    const Duration said = std::chrono::seconds(seconds_of(lease));
    others_until_ = std::max(others_until_, now + std::max(said, settings_.lease_duration));
  }
  lease_ = std::move(lease);
  missing_ = false;
}

void ElectionMachine::handle(ApiResult<Json> answer, SteadyTime now, double jitter) {
  const auto more =
      Duration(static_cast<int64_t>(static_cast<double>(settings_.retry_period.count()) * jitter / 5));
  const Duration pause = settings_.retry_period + more;
  // Told to others already, by the clock: a late answer doesn't bring it back.
  if (leadership_ == Leadership::kLeading && now >= leads_until()) leadership_ = Leadership::kLost;
  if (leadership_ == Leadership::kLost) return;
  if (reading_) {
    handle_read(std::move(answer), now, pause);
  } else {
    handle_write(std::move(answer), now, pause);
  }
}

void ElectionMachine::handle_read(ApiResult<Json> answer, SteadyTime now, Duration pause) {
  due_ = now + pause;
  if (!answer && !answer.error().not_found()) return;
  if (answer) {
    take_note(std::move(*answer), now);
    const std::string holder = holder_of(lease_);
    // A leader that finds another one's name: it was too late, or somebody wants it to end.
    if (leadership_ == Leadership::kLeading && !holder.empty() && holder != settings_.identity) {
      leadership_ = Leadership::kLost;
      return;
    }
  } else {
    lease_ = nullptr;
    missing_ = true;
  }
  fresh_ = missing_ || leadership_ == Leadership::kLeading || now >= others_until_;
  if (fresh_) due_ = now;
}

void ElectionMachine::handle_write(ApiResult<Json> answer, SteadyTime now, Duration pause) {
  due_ = now + pause;
  if (answer) take_note(std::move(*answer), now);
  if (answer && !placing_ && now < asked_ + settings_.renew_deadline) {
    renewed_ = asked_;
    leadership_ = Leadership::kLeading;
    hurried_ = false;
    return;
  }
  // Somebody has written meanwhile, or it was our own write whose answer was lost: a look will tell.
  fresh_ = false;
  const bool stale = !answer && (answer.error().code == 409 || answer.error().not_found());
  if (leadership_ == Leadership::kLeading && stale && !std::exchange(hurried_, true)) due_ = now;
}

bool ElectionMachine::step_down() {
  return std::exchange(leadership_, Leadership::kLost) == Leadership::kLeading;
}

std::optional<UpdateLease> ElectionMachine::handover(Json lease, TimePoint wall) const {
  if (holder_of(lease) != settings_.identity) return std::nullopt;
  lease["spec"]["holderIdentity"] = "";
  lease["spec"]["leaseDurationSeconds"] = kReleasedSeconds;
  lease["spec"]["renewTime"] = lease["spec"]["acquireTime"] = micro_time(wall);
  return UpdateLease{std::move(lease)};
}

}  // namespace coxswain
