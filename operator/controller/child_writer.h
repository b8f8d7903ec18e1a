// Carries out the actions of a Plan: the only place where children are written.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "operator/client/api_client.h"
#include "operator/controller/parallel_runner.h"
#include "operator/reconcile/observed.h"
#include "operator/reconcile/plan.h"

namespace coxswain {

struct ActionNotBegun {};  // another of those that it was carried out with had failed
struct ActionDone {
  Json object;  // the child as it now is; null where nothing is known of it
  Resource resource;
};
struct ActionGone {  // nothing is left of the child
  Resource resource;
  std::string name;
  std::string uid;
};
struct ActionWaits {};  // an older child of ours has yet to go: a watch event will tell
struct ActionConflicts {
  NameConflict conflict;
};
struct ActionRejected {
  Rejection rejection;  // without time and count
};
struct ActionUnanswered {
  ApiError error;  // nobody knows whether it happened: try again
};
using ActionResult = std::variant<ActionNotBegun, ActionDone, ActionGone, ActionWaits, ActionConflicts,
                                  ActionRejected, ActionUnanswered>;

// Done, gone or waiting: the next action may follow.
bool succeeded(const ActionResult& result);

ActionResult carry_out(ApiClient& api, const TrainingJob& job, const Action& action);

// How many of the first actions may be carried out in any order: creations of pods, or deletions of pods; at
// least one.
size_t alike(std::span<const Action> actions);

// As many at a time as the runner has threads; after a failure none is begun. The results are in the actions'
// order.
std::vector<ActionResult> carry_out_together(ApiClient& api, const TrainingJob& job,
                                             std::span<const Action> actions, ParallelRunner& runner);

}  // namespace coxswain
