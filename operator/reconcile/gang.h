// The pods of a job, sorted: the current attempt's by rank, and those of earlier attempts that are to go.
#pragma once

#include <vector>

#include "operator/reconcile/observed.h"
#include "operator/reconcile/plan.h"
#include "operator/reconcile/reconcile.h"

namespace coxswain {

// Points into the Observed that it was made from.
struct Gang {
  std::vector<const ObservedPod*> by_rank;  // of size spec.nodes; null: there is none
  std::vector<const ObservedPod*> surplus;  // of this attempt, but of no rank of it
  std::vector<const ObservedPod*> old;      // of earlier attempts, or of none that can be told
};

Gang sort_pods(const TrainingJob& job, int64_t attempt, const Observed& observed);

// The trainer ended with 0, whatever sidecars still do.
bool has_succeeded(const ObservedPod& pod);
// The trainer ended otherwise, or the pod failed around it.
bool has_failed(const ObservedPod& pod);
// It runs or has run.
bool has_started(const ObservedPod& pod);

bool all_succeeded(const Gang& gang);
bool all_started(const Gang& gang);

NodesStatus count_nodes(const Gang& gang);

// Service, ConfigMap and pods of `attempt` that are not there, in that order.
std::vector<Action> missing_children(const TrainingJob& job, const TrainingJobStatus& status,
                                     const Gang& gang, const Observed& observed);

}  // namespace coxswain
