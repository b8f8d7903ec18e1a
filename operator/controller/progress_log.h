// What the agents of one job have told, from pass to pass. Losing it delays the detection of a hang by its
// timeout at most.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/controller/progress_reader.h"
#include "operator/reconcile/observed.h"

namespace coxswain {

// Used by one thread at a time.
class ProgressLog {
 public:
  // Asks rank 0's agent, and all agents when it is time to (see is_everyone_asked), `parallel` at a time and
  // no more often than every `interval`. False: it was not time, or nobody was there to be asked.
  bool ask(ProgressReader& reader, int parallel, const TrainingJob& job, const Objects& pods, TimePoint now,
           Duration interval);

  // Fills Observed's progress, moved and agents with what was told in that attempt.
  void tell(int64_t attempt, Observed& observed) const;

 private:
  void take(const TrainingJob& job, const ObservedPod& pod, const std::optional<Json>& answer, TimePoint now);

  int64_t attempt_ = -1;
  TimePoint asked_{};
  std::optional<TimePoint> moved_;
  std::optional<Progress> progress_;
  std::vector<AgentAnswer> agents_;
  std::map<std::string, Json> last_;  // answers by the pod's UID
};

}  // namespace coxswain
