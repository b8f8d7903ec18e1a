// From the changes of TrainingJobs: which restarts happened, and how long a job's first start took. Pure but
// for what it remembers of jobs in their first attempt.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/training_job.h"

namespace coxswain {

enum class Milestone { kPodsCreated, kPodsRunning, kFirstStep };

struct MilestoneReached {
  Milestone milestone;
  double seconds = 0;  // from metadata.creationTimestamp, which has whole seconds
};

struct JobNews {
  std::optional<std::string> restart_cause;  // status.attempt has risen, for this cause
  std::vector<MilestoneReached> reached;
};

// Milestones are told of once, and only of a job's attempt 0 while it has never been suspended: what a
// suspension or a restart adds is nobody's start-up time. A job that is first seen past a milestone (the
// operator was restarted) has none to tell. Used by one thread at a time.
class JobMilestones {
 public:
  // As ControllerObserver's.
  JobNews job_changed(const Json& before, const Json& after, TimePoint now);
  JobNews pods_created(const TrainingJob& job, TimePoint now);

  // How many jobs it remembers something of.
  size_t size() const { return told_.size(); }

 private:
  void tell(const TrainingJob& job, Milestone milestone, TimePoint now, JobNews& news);

  std::map<std::string, unsigned> told_;  // bits of Milestone, by the job's UID
};

}  // namespace coxswain
