// Carries out the actions of a Plan and publishes its events: the only place where children are written.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "operator/client/api_client.h"
#include "operator/client/clock.h"
#include "operator/reconcile/observed.h"
#include "operator/reconcile/plan.h"

namespace coxswain {

struct ActionDone {
  Json object;  // the child as it now is; null after a deletion
  Resource resource;
};
struct ActionWaits {};  // an older child of ours has yet to go: a watch event will tell
struct ActionConflicts {
  NameConflict conflict;
};
struct ActionRejected {
  Rejection rejection;
  std::optional<Duration> retry_after;
};
struct ActionUnanswered {
  ApiError error;  // nobody knows whether it happened: try again
};
using ActionResult = std::variant<ActionDone, ActionWaits, ActionConflicts, ActionRejected, ActionUnanswered>;

ActionResult carry_out(ApiClient& api, const TrainingJob& job, const Action& action);

// A v1 Event about the job; the same words again raise its count instead. Failures are not reported back: an
// event lost is no harm to training.
void publish(ApiClient& api, const TrainingJob& job, const Event& event, TimePoint now);

}  // namespace coxswain
