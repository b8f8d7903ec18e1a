#include "operator/metrics/job_milestones.h"

#include <algorithm>

#include "operator/api/parse.h"

namespace coxswain {

namespace {

unsigned bit(Milestone milestone) {
  return 1U << static_cast<unsigned>(milestone);
}

bool is_first_start(const TrainingJobStatus& status) {
  return status.attempt == 0 && find_condition(status, kConditionSuspended) == nullptr;
}

std::optional<std::string> restart_cause(const TrainingJobStatus& before, const TrainingJobStatus& after) {
  // A suspension and the release of a partial gang raise the attempt too, without a failure of their own.
  const bool failed =
      after.attempt > before.attempt && after.last_failure && after.last_failure->attempt >= before.attempt;
  if (!failed || before.last_failure == after.last_failure) return std::nullopt;
  return after.last_failure->cause;
}

}  // namespace

JobNews JobMilestones::job_changed(const Json& before, const Json& after, TimePoint now) {
  JobNews news;
  if (after.is_null()) {
    told_.erase(parse_training_job(before).metadata.uid);
    return news;
  }
  if (!before.is_null() && before.value("status", Json()) == after.value("status", Json())) return news;
  const TrainingJob job = parse_training_job(after);
  const bool runs = has_condition(job.status, kConditionRunning);
  const bool steps = job.status.training.has_value();
  if (before.is_null()) {
    const unsigned seen =
        (runs ? bit(Milestone::kPodsRunning) : 0U) | (steps ? bit(Milestone::kFirstStep) : 0U);
    if (seen != 0 && is_first_start(job.status)) told_[job.metadata.uid] |= seen;
    return news;
  }
  news.restart_cause = restart_cause(parse_training_job(before).status, job.status);
  if (!is_first_start(job.status)) {
    told_.erase(job.metadata.uid);
    return news;
  }
  if (runs) tell(job, Milestone::kPodsRunning, now, news);
  if (steps) tell(job, Milestone::kFirstStep, now, news);
  return news;
}

JobNews JobMilestones::pods_created(const TrainingJob& job, TimePoint now) {
  JobNews news;
  if (is_first_start(job.status)) tell(job, Milestone::kPodsCreated, now, news);
  return news;
}

void JobMilestones::tell(const TrainingJob& job, Milestone milestone, TimePoint now, JobNews& news) {
  if (!job.metadata.creation_timestamp) return;
  unsigned& told = told_[job.metadata.uid];
  if ((told & bit(milestone)) != 0) return;
  told |= bit(milestone);
  const std::chrono::duration<double> since = now - *job.metadata.creation_timestamp;
  news.reached.push_back({milestone, std::max(0.0, since.count())});
}

}  // namespace coxswain
