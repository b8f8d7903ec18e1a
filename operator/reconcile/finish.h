// The end of a job: Complete and Failed, and what is cleaned after it.
#pragma once

#include "operator/reconcile/draft.h"

namespace coxswain {

Draft completed(const View& view, Draft draft);
Draft failed(const View& view, Draft draft, const Words& words);

// Complete and Failed are for ever: only what is still going on below them is counted and cleaned, and when
// its time to live is over the job is deleted – or, where a GitOps tool would apply it again (and so train
// again), only what it made.
Draft after_the_end(const View& view, Draft draft);

}  // namespace coxswain
