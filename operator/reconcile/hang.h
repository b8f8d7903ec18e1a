// runPolicy.hangTimeoutSeconds: no rank of a running gang has moved for so long – no step, no checkpoint, no
// other phase.
//
// From when that counts: the latest of the pods' running, status.training.lastProgressTime (so that it holds
// over a restart of the operator) and what agents have told since. Somebody must answer for a hang to be
// called one: where no agent can be reached, nothing is known. And this operator must have listened for half
// of the time: what moved while there was none it has not heard.
#pragma once

#include "operator/reconcile/conditions.h"
#include "operator/reconcile/failure_cause.h"

namespace coxswain {

// Whether by now all agents are to be asked, not only rank 0's: half of the time has passed.
bool is_everyone_asked(const TrainingJob& job, const std::optional<TimePoint>& moved, TimePoint now);

// NoFailure: not running, not looked for, or nobody answers. Settling: it will be a hang then.
GangVerdict judge_hang(const TrainingJob& job, const Gang& gang, const Observed& observed, TimePoint now);

// Where it would be looked for and no agent answers: what is to be said of that. Nothing before the time has
// passed.
std::optional<Words> unheard(const TrainingJob& job, const Gang& gang, const Observed& observed,
                             TimePoint now);

// "rank 3: train, step 41; ranks 0-2,4-7: train, step 42; pod j-5: no answer" – the fewest first.
std::string positions_in_words(const std::vector<AgentAnswer>& agents);

}  // namespace coxswain
