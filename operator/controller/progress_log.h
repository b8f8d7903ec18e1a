// What the agents of one job have told, from pass to pass. Losing it delays the detection of a hang by its
// timeout at most.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "operator/controller/progress_reader.h"
#include "operator/reconcile/observed.h"

namespace coxswain {

// Safe from any thread; ask() from one at a time.
class ProgressLog {
 public:
  // When ask() will ask for that attempt: not before `interval` after the last time.
  TimePoint due(int64_t attempt, Duration interval) const;

  // Asks rank 0's agent, and all agents when it is time to (see is_everyone_asked), `parallel` at a time;
  // takes as long as they take to answer, 6 s at most. False: nobody was there to be asked.
  bool ask(ProgressReader& reader, int parallel, const TrainingJob& job, const Objects& pods, TimePoint now);

  // Fills Observed's progress, moved, heard and agents with what was told in that attempt.
  void tell(int64_t attempt, Observed& observed) const;

 private:
  // Of one attempt.
  struct Told {
    int64_t attempt = -1;
    TimePoint asked{};
    std::optional<TimePoint> heard;
    std::optional<TimePoint> moved;
    std::optional<Progress> progress;
    std::vector<AgentAnswer> agents;
    std::map<std::string, Json> last;  // answers by the pod's UID
  };

  static void take(const TrainingJob& job, const ObservedPod& pod, const std::optional<Json>& answer,
                   TimePoint now, Told& told);

  mutable std::mutex mutex_;
  Told told_;
};

}  // namespace coxswain
