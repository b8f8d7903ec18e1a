// Jobs on an API that loses answers, refuses and conflicts, under an operator that is killed between writes,
// on nodes that go and come. Each attempt is ended once, by a failure whose kind is known, so that the counts
// at the end can be held against what happened.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>

#include "operator/api/parse.h"
#include "tests/operator_field/simulated_cluster.h"

namespace coxswain::testing {
namespace {

using namespace resources;
using namespace std::chrono_literals;

constexpr int kJobs = 3;
constexpr int kPodsOfAJob = 3;

class FaultStorm {
 public:
  explicit FaultStorm(unsigned seed) : random_(seed), cluster_(5) {
    cluster_.script = [this](const ApiCall& call) { return api_fault(call); };
    for (int i = 0; i < kJobs; ++i) {
      const std::string name = "j" + std::to_string(i);
      const Json policy = {{"backoffLimit", 1000}, {"terminationGracePeriodSeconds", 20}};
      EXPECT_TRUE(cluster_.submit(name, kPodsOfAJob, {{"runPolicy", policy}}));
      jobs_[name];
    }
  }

  void step() {
    if (chance(40)) cluster_.faulty->die_after_writes(pick(6));
    if (chance(50)) cluster_.api.end_watches(chance(2));
    for (auto& [name, job] : jobs_) happen(name, job);
    const size_t calls_before = cluster_.faulty->calls().size();
    cluster_.pass_time(std::chrono::seconds(1 + pick(5)));
    const size_t calls = cluster_.faulty->calls().size() - calls_before;
    EXPECT_LE(calls, 400U) << "a hot loop";
    calls_ += calls;
    if (cluster_.faulty->dead()) cluster_.restart_operator();
    for (auto& [name, job] : jobs_) check(name, job);
    if (!lost_node_.empty() && cluster_.now > back_at_) {
      cluster_.bring_back(lost_node_);
      lost_node_.clear();
    }
  }

  // No more faults: every job must run, and its counts be those of what happened to it.
  void calm() {
    calm_ = true;
    cluster_.restart_operator();
    // A node that came back before its time was over would have cost nothing, and has been counted.
    if (!lost_node_.empty()) cluster_.pass_time(std::max<Duration>(1s, back_at_ - cluster_.now));
    if (!lost_node_.empty()) cluster_.bring_back(lost_node_);
    for (auto& [name, job] : jobs_) {
      ASSERT_TRUE(cluster_.until([&] { return cluster_.phase(name) == "Running"; }))
          << name << " " << cluster_.phase(name);
      check(name, job);
      EXPECT_EQ(cluster_.status(name).restarts.counted, job.failures) << name;
      EXPECT_EQ(cluster_.status(name).restarts.disruptions, job.disruptions) << name;
      EXPECT_EQ(cluster_.status(name).attempt, job.failures + job.disruptions)
          << name << " " << status_to_json(cluster_.status(name)).dump() << events_of(name);
      EXPECT_EQ(cluster_.status(name).restarts.hangs, 0);
    }
    cluster_.faulty->forget_calls();
    cluster_.pass_time(10min);
    EXPECT_LE(cluster_.faulty->calls().size(), 20U) << "jobs that run cost requests";
    for (auto& [name, job] : jobs_) cluster_.end_all(name, 0);
    cluster_.pass_time(30s);
    for (auto& [name, job] : jobs_) {
      EXPECT_EQ(cluster_.phase(name), "Complete");
      const auto conditions = cluster_.status(name).conditions;
      cluster_.restart_operator();
      cluster_.pass_time(10min);
      EXPECT_EQ(cluster_.status(name).conditions, conditions) << "terminal is for ever";
    }
  }

  int faults() const { return faults_; }
  int ended() const {
    int sum = 0;
    for (const auto& [_, job] : jobs_) sum += static_cast<int>(job.failures + job.disruptions);
    return sum;
  }
  size_t calls() const { return calls_; }

 private:
  struct Job {
    int64_t failures = 0;
    int64_t disruptions = 0;
    int64_t ended_attempt = -1;  // the last that something was done to
    TrainingJobStatus before;
  };

  int pick(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(std::max(1, bound))); }
  bool chance(int one_in) { return pick(one_in) == 0; }

  std::optional<ApiFault> api_fault(const ApiCall& call) {
    if (calm_ || call.verb == Verb::kWatch || call.verb == Verb::kList || !chance(12)) return std::nullopt;
    ++faults_;
    const bool done = chance(2);  // carried out, the answer lost
    switch (pick(5)) {
      case 0:
        return ApiFault{{500, "InternalError", "etcd is not well", std::nullopt}, false};
      case 1:
        return ApiFault{{429, "TooManyRequests", "slow down", 1s}, false};
      case 2:
        if (call.verb == Verb::kUpdateStatus)
          return ApiFault{{409, "Conflict", "changed", std::nullopt}, false};
        if (call.verb == Verb::kCreate && call.plural == "pods") {
          return ApiFault{{403, "Forbidden", "exceeded quota: q", std::nullopt}, false};
        }
        [[fallthrough]];
      default:
        return ApiFault{{0, "", "connection lost", std::nullopt}, done};
    }
  }

  // One ending for an attempt, once all of it runs and the status says so.
  void happen(const std::string& name, Job& job) {
    const TrainingJobStatus status = cluster_.status(name);
    const auto pods = cluster_.pods(name);
    const bool whole = status.phase == Phase::kRunning && pods.size() == kPodsOfAJob;
    if (!whole || job.ended_attempt >= status.attempt || !chance(3)) return;
    const Json& pod = pods[static_cast<size_t>(pick(kPodsOfAJob))];
    const std::string victim = pod["metadata"]["name"];
    switch (pick(5)) {
      case 0:
      case 1:
        cluster_.end(victim, 1 + pick(200), "evidence " + std::to_string(status.attempt));
        ++job.failures;
        break;
      case 2:
        cluster_.api.remove(kPods, kNs, victim, {});
        ++job.disruptions;
        break;
      case 3:
        cluster_.end(victim, 137);
        cluster_.set_pod_status(victim, {{"reason", "Evicted"}, {"message", "low on memory"}});
        ++job.disruptions;
        break;
      default:
        if (!lose_node_of(pod)) return;
    }
    job.ended_attempt = std::max(job.ended_attempt, status.attempt);
    ++faults_;
  }

  // Ends the attempt of every job that has a pod there; only where none of them is being ended already.
  bool lose_node_of(const Json& pod) {
    if (!lost_node_.empty()) return false;
    const std::string node = pod["spec"]["nodeName"];
    std::vector<std::string> hit;
    for (auto& [name, job] : jobs_) {
      const auto pods = cluster_.pods(name);
      const bool there = std::ranges::any_of(
          pods, [&](const Json& one) { return one["spec"].value("nodeName", "") == node; });
      const TrainingJobStatus status = cluster_.status(name);
      const bool steady =
          status.phase == Phase::kRunning && pods.size() == kPodsOfAJob && job.ended_attempt < status.attempt;
      if (there && !steady) return false;
      if (there) hit.push_back(name);
      // A job that is about to place pods might place them there before the node is known to be gone.
      if (!steady) return false;
    }
    for (const std::string& name : hit) {
      ++jobs_[name].disruptions;
      jobs_[name].ended_attempt = cluster_.status(name).attempt;
    }
    lost_node_ = node;
    back_at_ = cluster_.now + 4min;
    cluster_.lose_node(node);
    return true;
  }

  void check(const std::string& name, Job& job) {
    const TrainingJobStatus status = cluster_.status(name);
    const TrainingJobStatus& before = job.before;
    // Never two live pods of one rank: pods of two attempts are never there together.
    std::map<std::string, std::string> attempt_of;
    std::optional<std::string> attempt;
    for (const Json& pod : cluster_.pods(name)) {
      const std::string label = pod["metadata"]["labels"][contract::kLabelAttempt];
      EXPECT_LE(std::stoll(label), status.attempt);
      EXPECT_EQ(attempt.value_or(label), label) << "pods of two attempts";
      attempt = label;
    }
    // Never more is counted than happened; a count never goes back.
    EXPECT_LE(status.restarts.counted, job.failures);
    EXPECT_LE(status.restarts.disruptions, job.disruptions);
    EXPECT_GE(status.restarts.counted, before.restarts.counted);
    EXPECT_GE(status.restarts.disruptions, before.restarts.disruptions);
    EXPECT_GE(status.attempt, before.attempt);
    EXPECT_FALSE(is_finished(status));
    job.before = status;
  }

  std::string events_of(const std::string& name) {
    std::string text;
    const std::vector<Json> events = cluster_.api.list(kEvents, kNs, {})->items;
    for (const Json& event : events) {
      if (event["regarding"]["name"] != name) continue;
      text += "\n" + event["eventTime"].get<std::string>() + " " + event["reason"].get<std::string>() + ": " +
              event["note"].get<std::string>();
    }
    return text;
  }

  std::mt19937 random_;
  SimulatedCluster cluster_;
  std::map<std::string, Job> jobs_;
  std::string lost_node_;
  TimePoint back_at_{};
  bool calm_ = false;
  int faults_ = 0;
  size_t calls_ = 0;
};

// COXSWAIN_STORM_SEED repeats one storm; COXSWAIN_STORMS makes more of them.
TEST(FaultStorm, LosesAndDoublesNothing) {
  const char* one = std::getenv("COXSWAIN_STORM_SEED");
  const char* many = std::getenv("COXSWAIN_STORMS");
  const unsigned first = one != nullptr ? static_cast<unsigned>(std::atoi(one)) : 1;
  const unsigned count = one != nullptr ? 1 : many != nullptr ? static_cast<unsigned>(std::atoi(many)) : 6;
  int faults = 0;
  int ended = 0;
  size_t calls = 0;
  for (unsigned seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    FaultStorm storm(seed);
    for (int i = 0; i < 150 && !HasFailure(); ++i) storm.step();
    if (!HasFailure()) storm.calm();
    faults += storm.faults();
    ended += storm.ended();
    calls += storm.calls();
    if (HasFailure()) return;  // one seed is enough to look at
  }
  std::printf("seeds %u-%u: %d faults, %d attempts ended, %zu requests, violations 0\n", first,
              first + count - 1, faults, ended, calls);
  EXPECT_GT(ended, 10 * static_cast<int>(count)) << "the storm ended hardly anything";
}

}  // namespace
}  // namespace coxswain::testing
