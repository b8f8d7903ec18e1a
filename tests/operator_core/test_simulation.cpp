// Random deaths of pods, and of the operator between any two writes, held against what must always be true.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/operator_core/harness.h"

namespace coxswain::testing {
namespace {

using namespace std::chrono_literals;

class Storm {
 public:
  explicit Storm(unsigned seed)
      : random_(seed),
        world_("{nodes: 3, runPolicy: {backoffLimit: 4, terminationGracePeriodSeconds: 20}}") {}

  void step() {
    before_ = world_.job.status;
    happen();
    const Plan plan = world_.plan();
    const int writes = static_cast<int>(plan.actions.size()) + 1;
    world_.apply(plan,
                 chance(4) ? pick(writes + 1) : writes);  // one in four times the operator dies in between
    check();
    world_.advance(std::chrono::milliseconds(pick(4000)));
  }

  // Calm: no more faults; every job must come to an end.
  void come_to_rest() {
    world_.job.spec.suspend = false;
    for (int i = 0; i < 400 && !is_finished(world_.job.status); ++i) {
      world_.finish_deletions();
      world_.run_all();
      if (world_.phase() == "Running") {
        for (ObservedPod& pod : world_.pods) world_.end(pod.node_rank, 0);
      }
      world_.pass();
      world_.advance(10s);
    }
    EXPECT_TRUE(is_finished(world_.job.status)) << world_.phase() << " " << world_.names();
  }

  const World& world() const { return world_; }
  int64_t counted() const { return world_.job.status.restarts.counted; }

 private:
  int pick(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(std::max(1, bound))); }
  bool chance(int one_in) { return pick(one_in) == 0; }

  void happen() {
    if (chance(2)) world_.run_all();
    if (chance(3)) world_.finish_deletions();
    if (chance(40)) world_.job.spec.suspend = !world_.job.spec.suspend;
    if (world_.pods.empty() || !chance(6)) return;
    ObservedPod& pod = world_.pods[static_cast<size_t>(pick(static_cast<int>(world_.pods.size())))];
    if (chance(6)) {
      std::erase_if(world_.pods, [uid = pod.uid](const ObservedPod& p) { return p.uid == uid; });
    } else if (chance(4)) {
      if (!pod.terminating()) pod.deletion_time = world_.now + 20s;
    } else if (pod.phase == PodPhase::kRunning) {
      static constexpr int64_t kCodes[] = {0, 70, 75, 76, 76, 137};
      const int64_t code = kCodes[pick(6)];
      pod.phase = code == 0 ? PodPhase::kSucceeded : PodPhase::kFailed;
      pod.termination = Termination{code, 0, "", "", world_.now};
    }
  }

  void check() {
    const TrainingJobStatus& status = world_.job.status;
    // Never two live pods of one rank, and never pods of two attempts but for those that are to go.
    std::map<int64_t, int> live;
    for (const ObservedPod& pod : world_.pods) {
      ++live[pod.node_rank];
      EXPECT_LE(pod.attempt, status.attempt);
      if (pod.attempt == status.attempt) newest_seen_ = std::max(newest_seen_, pod.attempt);
    }
    for (const auto& [rank, pods] : live) EXPECT_LE(pods, 1) << "rank " << rank << ": " << world_.names();
    // An attempt ends once: by one restart, counted or not, or by a suspension.
    const RestartsStatus& now = status.restarts;
    const RestartsStatus& then = before_.restarts;
    const int64_t restarts = now.counted - then.counted + now.disruptions - then.disruptions;
    EXPECT_GE(now.counted, then.counted);
    EXPECT_GE(now.disruptions, then.disruptions);
    EXPECT_LE(restarts, 1);
    EXPECT_LE(status.attempt - before_.attempt, 1);
    if (restarts == 1) {
      EXPECT_EQ(status.attempt, before_.attempt + 1);
      EXPECT_EQ(status.last_failure->attempt, before_.attempt);
    }
    EXPECT_LE(now.counted, world_.job.spec.run_policy.backoff_limit);
    // Terminal is for ever.
    if (is_finished(before_)) {
      EXPECT_EQ(status.conditions, before_.conditions);
      EXPECT_EQ(status.attempt, before_.attempt);
    }
    EXPECT_FALSE(has_condition(status, kConditionComplete) && has_condition(status, kConditionFailed));
    EXPECT_FALSE(has_condition(status, kConditionRunning) && has_condition(status, kConditionRestarting));
  }

  std::mt19937 random_;
  World world_;
  TrainingJobStatus before_;
  int64_t newest_seen_ = 0;
};

TEST(Simulation, InvariantsHoldInAStorm) {
  int64_t restarts = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Storm storm(seed);
    for (int i = 0; i < 150; ++i) storm.step();
    storm.come_to_rest();
    restarts += storm.world().job.status.attempt;
    if (::testing::Test::HasFailure()) return;  // one seed is enough to look at
  }
  EXPECT_GT(restarts, 60) << "the storm did not restart anything to speak of";
}

}  // namespace
}  // namespace coxswain::testing
