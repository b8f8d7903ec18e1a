// The controller as the operator runs it. Run under ThreadSanitizer too (cmake --preset tsan).
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "contract/contract.h"
#include "operator/api/parse.h"
#include "operator/client/faulty_api.h"
#include "operator/controller/controller.h"
#include "tests/client/objects.h"
#include "tests/client/simulated_node.h"

namespace coxswain {
namespace {

using namespace resources;
constexpr char kNs[] = "ns";

// As on a cluster: a thread for each watch and worker, the system's clock, a kubelet beside it.
class ControllerThreadsTest : public ::testing::Test {
 protected:
  MemoryApi api_;
  FaultyApi::Script script_;
  FaultyApi faulty_{api_, [this](const ApiCall& call) { return script_ ? script_(call) : std::nullopt; }};
  SimulatedNode node_{api_, system_time};

  static ControllerOptions options() {
    ControllerOptions options;
    options.settings.settle = std::chrono::milliseconds(1);
    options.settings.backoff_base = std::chrono::milliseconds(1);
    options.settings.backoff_max = std::chrono::milliseconds(2);
    options.retry_base = std::chrono::milliseconds(1);
    options.retry_max = std::chrono::milliseconds(20);
    options.watch.backoff_base = options.watch.backoff_max = std::chrono::milliseconds(1);
    return options;
  }
  bool eventually(const std::function<bool()>& holds) {
    for (int i = 0; i < 6000 && !holds(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return holds();
  }
  TrainingJobStatus status(const std::string& name) {
    return parse_training_job(*api_.get(kTrainingJobs, kNs, name)).status;
  }
};

TEST_F(ControllerThreadsTest, ManyJobsFailOnceAndCompleteWhileWatchesAreCut) {
  constexpr int kJobs = 20;
  std::atomic<int> calls{0};
  script_ = [&](const ApiCall&) -> std::optional<ApiFault> {
    // Every so often an answer is lost, before the call or after it.
    const int call = ++calls;
    if (call % 23 == 0) return ApiFault{{0, "", "lost", std::nullopt}, call % 2 == 0};
    return std::nullopt;
  };
  Controller controller(faulty_, nullptr, system_time, options());
  std::jthread running([&](std::stop_token stop) { controller.run(stop); });
  for (int j = 0; j < kJobs; ++j) {
    ASSERT_TRUE(api_.create(kTrainingJobs, kNs, a_training_job("j" + std::to_string(j), 3), {}));
  }
  int turn = 0;
  const bool all_complete = eventually([&] {
    node_.step();
    if (++turn % 20 == 0) api_.end_watches(turn % 40 == 0);
    int complete = 0;
    for (int j = 0; j < kJobs; ++j) {
      const std::string name = "j" + std::to_string(j);
      const TrainingJobStatus now = status(name);
      complete += now.phase == Phase::kComplete;
      if (now.phase != Phase::kRunning) continue;
      if (now.attempt == 0) {
        node_.end(kNs, name + "-1", 9);
      } else {
        for (int rank = 0; rank < 3; ++rank) node_.end(kNs, name + "-" + std::to_string(rank), 0);
      }
    }
    return complete == kJobs;
  });
  EXPECT_TRUE(all_complete);
  running.request_stop();
  running.join();
  for (int j = 0; j < kJobs; ++j) {
    const TrainingJobStatus end = status("j" + std::to_string(j));
    EXPECT_EQ(end.attempt, 1) << j;
    EXPECT_EQ(end.restarts.counted, 1) << j;
    EXPECT_EQ(end.restarts.disruptions, 0) << j;
  }
}

TEST_F(ControllerThreadsTest, APassBegunIsFinishedBeforeItStops) {
  std::mutex mutex;
  std::condition_variable changed;
  bool inside = false;
  bool may_go_on = false;
  script_ = [&](const ApiCall& call) -> std::optional<ApiFault> {
    if (call.verb != Verb::kCreate || call.name != "j-0") return std::nullopt;
    std::unique_lock lock(mutex);
    inside = true;
    changed.notify_all();
    changed.wait(lock, [&] { return may_go_on; });
    return std::nullopt;
  };
  Controller controller(faulty_, nullptr, system_time, options());
  std::jthread running([&](std::stop_token stop) { controller.run(stop); });
  ASSERT_TRUE(api_.create(kTrainingJobs, kNs, a_training_job("j", 4), {}));
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return inside; });
  }
  running.request_stop();
  {
    std::lock_guard lock(mutex);
    may_go_on = true;
  }
  changed.notify_all();
  running.join();
  EXPECT_EQ(api_.list(kPods, kNs, {})->items.size(), 4U);
}

// Its agents answer late or never.
class SlowAgents : public ProgressReader {
 public:
  std::optional<Json> read(const Json& pod) override {
    if (pod["metadata"]["labels"][contract::kLabelJobName] != "slow") return std::nullopt;
    std::unique_lock lock(mutex_);
    ++asked_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return may_answer_; });
    return std::nullopt;
  }
  void wait_until_asked() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return asked_ > 0; });
  }
  void let_answer() {
    std::lock_guard lock(mutex_);
    may_answer_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int asked_ = 0;
  bool may_answer_ = false;
};

Json with_agents(const std::string& name, int nodes) {
  Json job = a_training_job(name, nodes);
  job["spec"].erase("template");
  job["spec"]["config"] = {
      {"task", "llm"}, {"base_model", "/m"}, {"project_name", "p"}, {"data", {{"path", "/d"}}}};
  return job;
}

// With one worker, and while the job's own agents keep silent: neither it nor another one is held up.
TEST_F(ControllerThreadsTest, AgentsThatDoNotAnswerHoldUpNoJob) {
  SlowAgents agents;
  ControllerOptions one_worker = options();
  one_worker.workers = 1;
  Controller controller(faulty_, &agents, system_time, one_worker);
  std::jthread running([&](std::stop_token stop) { controller.run(stop); });
  ASSERT_TRUE(api_.create(kTrainingJobs, kNs, with_agents("slow", 2), {}));
  ASSERT_TRUE(eventually([&] {
    node_.step();
    return status("slow").phase == Phase::kRunning;
  }));
  agents.wait_until_asked();
  ASSERT_TRUE(api_.create(kTrainingJobs, kNs, with_agents("other", 2), {}));
  EXPECT_TRUE(eventually([&] {
    node_.step();
    return status("other").phase == Phase::kRunning;
  }));
  node_.end(kNs, "slow-1", 9);
  EXPECT_TRUE(eventually([&] {
    node_.step();
    return status("slow").attempt == 1;
  }));
  agents.let_answer();
  running.request_stop();
  running.join();
}

TEST_F(ControllerThreadsTest, AStopBeforeTheCachesAreFilledIsHeeded) {
  script_ = [](const ApiCall&) { return ApiFault{{503, "", "down", std::nullopt}, false}; };
  Controller controller(faulty_, nullptr, system_time, options());
  std::jthread running([&](std::stop_token stop) { controller.run(stop); });
  running.request_stop();
  running.join();
  EXPECT_FALSE(controller.synced());
}

}  // namespace
}  // namespace coxswain
