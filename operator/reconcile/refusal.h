// What it means that the API server refused a child, and when to try again.
#pragma once

#include <string>

#include "operator/reconcile/conditions.h"
#include "operator/reconcile/reconcile.h"

namespace coxswain {

enum class Outlook {
  kPasses,       // quota, throttling, a server that is not well: the same again may be accepted
  kNeedsChange,  // a policy, rights, a missing class: refused again until somebody changes something
  kNever,        // the object is invalid
};

struct Refusal {
  std::string reason;  // a word of reasons.h
  Outlook outlook = Outlook::kPasses;
  std::string sentence;  // what was refused, by the server's words, and what to do where that isn't in them
};

// By the words of Kubernetes' own admission plugins; what they don't tell is told by the HTTP status.
Refusal understand(const Rejection& rejection);

// What a taken name means for the job.
Words name_conflict_words(const NameConflict& conflict);

// When to try again: a second after the first refusal, doubled with each in a row to `refused_retry_max`, and
// up to a quarter more by job. A job that holds a part of its gang asks at least every
// `partial_gang_retry`, so that what another one gives up is taken. Never before the server's Retry-After.
TimePoint creation_due(const Rejection& rejection, bool holds_pods, const std::string& job_uid,
                       const Settings& settings);

// How long a job may keep a part of its gang that the rest is refused to: `partial_gang_hold`, and up to as
// much again by (uid, attempt), so that of two jobs with half of a quota each, one gives up first.
Duration partial_gang_hold(const std::string& job_uid, int64_t attempt, const Settings& settings);

}  // namespace coxswain
