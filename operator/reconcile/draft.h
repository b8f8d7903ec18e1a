// What the steps of a pass share: the view that they look at and the plan in the making.
#pragma once

#include <string>
#include <vector>

#include "operator/reconcile/conditions.h"
#include "operator/reconcile/gang.h"

namespace coxswain {

// References must outlive the pass.
struct View {
  const TrainingJob& job;
  const Observed& observed;
  TimePoint now;
  const Settings& settings;

  Mark mark() const { return {now, job.metadata.generation}; }
};

// `status` becomes Plan::status if it differs from what is written.
struct Draft {
  TrainingJobStatus status;
  std::vector<Action> actions;
  std::vector<Event> events;
  std::optional<TimePoint> wake;

  void wake_at(std::optional<TimePoint> time);
  void emit(EventType type, const char* reason, const std::string& message);
};

// Deletes `pods`, or waits for them, see delete_pods.
void delete_all(const View& view, const std::vector<const ObservedPod*>& pods, Draft& draft);
// The same for every pod of the job.
void delete_every_pod(const View& view, Draft& draft);

NodesStatus no_pods(const TrainingJob& job);

}  // namespace coxswain
