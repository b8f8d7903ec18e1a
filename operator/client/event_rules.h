// What a server refuses of an Event of events.k8s.io/v1.
#pragma once

#include <optional>
#include <string>

#include "operator/client/api_client.h"

namespace coxswain::event_rules {

// The field and what is wrong with it, as a server words it; nothing: it is good.
std::optional<std::string> check_create(const Json& event);
// All but the series stays as it was written.
std::optional<std::string> check_update(const Json& current, const Json& next);

}  // namespace coxswain::event_rules
