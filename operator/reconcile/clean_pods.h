// Which pods are deleted: those of earlier attempts always, a finished job's by runPolicy.cleanPodPolicy, and
// any that hangs in its deletion by force.
#pragma once

#include <vector>

#include "operator/reconcile/gang.h"

namespace coxswain {

struct Deletions {
  std::vector<DeletePod> pods;
  std::vector<const ObservedPod*> forced;  // those that are by force, and had not been yet
  std::optional<TimePoint> look_again;     // a pod that is being deleted may have to be forced then
};

// Of `pods`: those not yet being deleted, and by force those still there force_delete_after their grace is
// over – where their node is lost (see node_loss.h), force_delete_after their deletion began: there is nobody
// to use the grace.
Deletions delete_pods(const RunPolicy& policy, const std::vector<const ObservedPod*>& pods, TimePoint now,
                      const Settings& settings);

// Of a job that is Complete or Failed (see Note [Status before destruction]): `Running` those that have not
// ended, `All` all, `None` none, but those that a passed deadline stops.
std::vector<const ObservedPod*> pods_to_clean(const TrainingJob& job, const TrainingJobStatus& status,
                                              const Observed& observed);

}  // namespace coxswain
