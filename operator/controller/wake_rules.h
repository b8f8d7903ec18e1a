// Which changes of objects are a reason for a pass. `before` or `after` is null where the object appears or
// goes.
#pragma once

#include <optional>

#include "operator/client/api_client.h"
#include "operator/client/metadata.h"

namespace coxswain {

// Not a change of only the status (that is the operator's own) or of what the server notes beside it.
bool job_needs_pass(const Json& before, const Json& after);

// Anything but the version: what nobody reads was trimmed away before.
bool child_needs_pass(const Json& before, const Json& after);

// The TrainingJob that controls `object`, if one does.
std::optional<ObjectKey> controlling_job(const Json& object);

}  // namespace coxswain
