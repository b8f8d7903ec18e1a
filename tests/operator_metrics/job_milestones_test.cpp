#include "operator/metrics/job_milestones.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/parse.h"
#include "tests/client/objects.h"

namespace coxswain {
namespace {

const TimePoint kCreated{std::chrono::hours(1000)};

TimePoint after(int seconds) {
  return kCreated + std::chrono::seconds(seconds);
}

Json job(const TrainingJobStatus& status) {
  Json object = a_training_job("j");
  object["metadata"]["uid"] = "uid";
  object["metadata"]["creationTimestamp"] = format_time(kCreated);
  object["status"] = status_to_json(status);
  return object;
}

TrainingJobStatus running(bool runs = true, int64_t attempt = 0) {
  TrainingJobStatus status;
  status.attempt = attempt;
  status.conditions.push_back({kConditionRunning, runs, "R", "m", 1, kCreated});
  return status;
}

TrainingJobStatus training(TrainingJobStatus status, int64_t step) {
  status.training = TrainingStatus{};
  status.training->step = step;
  return status;
}

TrainingJobStatus failed_to(int64_t attempt, const std::string& cause) {
  TrainingJobStatus status = running(false, attempt);
  status.last_failure = LastFailure{after(100), attempt - 1, "j-0", 0, cause, 9, "m"};
  return status;
}

class JobMilestonesTest : public ::testing::Test {
 protected:
  std::vector<double> seconds(const JobNews& news, Milestone milestone) {
    std::vector<double> found;
    for (const MilestoneReached& one : news.reached) {
      if (one.milestone == milestone) found.push_back(one.seconds);
    }
    return found;
  }
  JobMilestones seen_;
  const Json fresh_ = job(TrainingJobStatus());
};

TEST_F(JobMilestonesTest, EachIsToldOnce) {
  EXPECT_TRUE(seen_.job_changed({}, fresh_, after(0)).reached.empty());
  const TrainingJob typed = parse_training_job(fresh_);
  EXPECT_THAT(seconds(seen_.pods_created(typed, after(2)), Milestone::kPodsCreated),
              ::testing::ElementsAre(2));
  EXPECT_TRUE(seen_.pods_created(typed, after(3)).reached.empty());
  const Json runs = job(running());
  EXPECT_THAT(seconds(seen_.job_changed(fresh_, runs, after(5)), Milestone::kPodsRunning),
              ::testing::ElementsAre(5));
  const Json steps = job(training(running(), 1));
  const JobNews first = seen_.job_changed(runs, steps, after(9));
  ASSERT_EQ(first.reached.size(), 1U);
  EXPECT_THAT(seconds(first, Milestone::kFirstStep), ::testing::ElementsAre(9));
  EXPECT_TRUE(seen_.job_changed(steps, job(training(running(), 2)), after(10)).reached.empty());
  // A pod that isn't ready for a moment is no second start.
  const Json pause = job(training(running(false), 2));
  EXPECT_TRUE(seen_.job_changed(steps, pause, after(11)).reached.empty());
  EXPECT_TRUE(seen_.job_changed(pause, job(training(running(), 2)), after(12)).reached.empty());
}

TEST_F(JobMilestonesTest, AnOperatorThatStartsLaterHasNothingToTell) {
  const Json steps = job(training(running(), 5));
  EXPECT_TRUE(seen_.job_changed({}, steps, after(500)).reached.empty());
  const Json pause = job(training(running(false), 5));
  EXPECT_TRUE(seen_.job_changed(steps, pause, after(501)).reached.empty());
  EXPECT_TRUE(seen_.job_changed(pause, steps, after(502)).reached.empty());
}

TEST_F(JobMilestonesTest, LaterAttemptsAndSuspensionsAreNoStart) {
  seen_.job_changed({}, fresh_, after(0));
  EXPECT_TRUE(seen_.job_changed(job(running(false, 1)), job(running(true, 1)), after(9)).reached.empty());
  TrainingJobStatus resumed = running();
  resumed.conditions.push_back({kConditionSuspended, false, "R", "m", 1, kCreated});
  EXPECT_TRUE(seen_.job_changed(fresh_, job(resumed), after(9)).reached.empty());
  EXPECT_TRUE(seen_.pods_created(parse_training_job(job(resumed)), after(9)).reached.empty());
}

TEST_F(JobMilestonesTest, ARestartIsCountedByItsCause) {
  const Json before = job(running());
  EXPECT_EQ(seen_.job_changed(before, job(failed_to(1, "OOMKilled")), after(100)).restart_cause, "OOMKilled");
  EXPECT_EQ(
      seen_.job_changed(job(failed_to(1, "OOMKilled")), job(failed_to(2, "Error")), after(200)).restart_cause,
      "Error");
}

TEST_F(JobMilestonesTest, OnlyARestartIs) {
  const Json once = job(failed_to(1, "Error"));
  // The same status again, also as what an operator sees first.
  EXPECT_FALSE(seen_.job_changed(once, once, after(101)).restart_cause);
  EXPECT_FALSE(seen_.job_changed({}, once, after(101)).restart_cause);
  // A suspension, or a partial gang that was released.
  TrainingJobStatus released = failed_to(1, "Error");
  released.attempt = 2;
  EXPECT_FALSE(seen_.job_changed(once, job(released), after(102)).restart_cause);
  // A failure that ends the job.
  TrainingJobStatus end = running(false);
  end.last_failure = LastFailure{after(100), 0, "j-0", 0, "BadInput", 2, "m"};
  EXPECT_FALSE(seen_.job_changed(job(running()), job(end), after(103)).restart_cause);
}

TEST_F(JobMilestonesTest, NothingIsRememberedOfJobsThatAreGoneOrPastTheirStart) {
  seen_.job_changed({}, fresh_, after(0));
  seen_.job_changed(fresh_, job(running()), after(1));
  EXPECT_EQ(seen_.size(), 1U);
  seen_.job_changed(job(running()), {}, after(2));
  EXPECT_EQ(seen_.size(), 0U);
  seen_.job_changed(fresh_, job(running()), after(1));
  seen_.job_changed(job(running()), job(failed_to(1, "Error")), after(3));
  EXPECT_EQ(seen_.size(), 0U);
}

}  // namespace
}  // namespace coxswain
