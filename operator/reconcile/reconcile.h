// The heart of the operator: from what was asked for and what is seen to what is to be done. Pure: no I/O, no
// clock, no state; the same arguments give the same plan. Level-based: every pass looks at everything again.
//
// Note [Status before destruction]: what a pass learns (cause, counters, attempt + 1) is part of
// Plan::status, which is written before Plan::actions are begun. Pods are deleted only when the status that
// is written says why: their attempt is below status.attempt, or the job is Complete or Failed. A crash
// between any two writes therefore loses no evidence and counts nothing twice.
#pragma once

#include <chrono>
#include <string>

#include "operator/api/training_job.h"
#include "operator/api/validate.h"
#include "operator/reconcile/observed.h"
#include "operator/reconcile/plan.h"

namespace coxswain {

struct Settings {
  // For jobs with a config and no image of their own.
  std::string runtime_image = "coxswain-runtime:latest";
  // Refuses a bad config before a pod exists; none: the runtime will.
  ConfigCheck check_config;
  // From the first failed pod to the decision what the cause was: peers and their exit codes arrive within
  // it.
  Duration settle = std::chrono::seconds(2);
  // The same where all that failed did so because a peer went away: the peer's own end takes longer to be
  // seen.
  Duration settle_collateral = std::chrono::seconds(15);
  // Before a restart: doubled with each counted failure from `backoff_base` to `backoff_max`, and up to a
  // quarter more (by job and attempt) so that jobs that failed together don't come back together.
  Duration backoff_base = std::chrono::seconds(5);
  Duration backoff_max = std::chrono::minutes(5);
  // While a pod that has told nothing may stand on a lost node: the node controller needs this long to say
  // so.
  Duration settle_silent = std::chrono::seconds(75);
  // A pod still there this long after its grace is over stands on a lost node: it is deleted by force. Where
  // the node is known to be lost, this long after its deletion began.
  Duration force_delete_after = std::chrono::seconds(60);
  // Of children that the API server refused, see refusal.h.
  Duration refused_retry_base = std::chrono::seconds(1);
  Duration refused_retry_max = std::chrono::minutes(5);
  Duration partial_gang_retry = std::chrono::seconds(15);
  Duration partial_gang_hold = std::chrono::seconds(60);
  // A pod that was given its node this long ago and has no sandbox yet is in trouble.
  Duration sandbox_patience = std::chrono::seconds(30);
  // A running job's rank 0 is asked for its progress so often, and progress alone is written no more often.
  Duration progress_interval = std::chrono::seconds(15);
  // A name that is taken is tried again after this.
  Duration name_conflict_retry = std::chrono::seconds(30);
  // The same where it is taken by a child of an earlier job of the same name.
  Duration predecessor_retry = std::chrono::seconds(5);
};

Plan reconcile(const TrainingJob& job, const Observed& observed, TimePoint now, const Settings& settings);

}  // namespace coxswain
