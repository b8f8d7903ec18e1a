// How long leaders and candidates wait; the names and defaults are client-go's.
#pragma once

#include <string>

#include "contract/result.h"
#include "operator/client/clock.h"

namespace coxswain {

struct ElectionSettings {
  std::string namespace_name;
  std::string lease_name;
  std::string identity;  // of this candidate: no other one may ever have it

  Duration lease_duration = std::chrono::seconds(15);  // a leader silent for this long has gone
  Duration renew_deadline = std::chrono::seconds(10);  // a leader that can't renew for this long gives up
  Duration retry_period = std::chrono::seconds(2);     // between tries, and up to a fifth more
};

// That a leader has given up before anybody takes it for gone, and has more than one try until then. Messages
// name the operator's flags.
Result<void> check(const ElectionSettings& settings);

// This machine's name and something random.
std::string make_identity();

}  // namespace coxswain
