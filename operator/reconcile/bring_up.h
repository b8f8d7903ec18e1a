// From nothing to all pods running, and what can keep a job from it.
#pragma once

#include "operator/reconcile/draft.h"

namespace coxswain {

// What is wrong before a pod exists; nothing: the job may start.
std::optional<Words> refusal_before_start(const View& view);

// The job starts, or starts again after a suspension: status and the events that go with it.
Draft started(const View& view, Draft draft);

// Waits for old pods and for the back-off, creates what is missing, says what holds it up, releases a part of
// a gang that the rest is refused to, and tells when all run.
Draft bring_up(const View& view, Draft draft, const Gang& gang);

// When to try again to create a child whose name is taken.
Duration name_retry(const NameConflict& conflict, const Settings& settings);

// The job waits for a name that is taken, and holds nothing that a deadline could give up.
bool waits_for_its_name(const TrainingJobStatus& status);

}  // namespace coxswain
