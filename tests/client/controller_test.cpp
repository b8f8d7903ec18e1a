// Whole lives of jobs: the real controller and reconciler on a MemoryApi, simulated nodes, a clock that tests
// turn.
#include "operator/controller/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>

#include "operator/api/parse.h"
#include "operator/client/faulty_api.h"
#include "tests/client/objects.h"
#include "tests/client/simulated_node.h"

namespace coxswain {
namespace {

using namespace resources;
using ::testing::HasSubstr;
constexpr char kNs[] = "ns";

struct FakeProgress : ProgressReader {
  std::optional<Json> read(const Json&) override {
    ++reads;
    return answer;
  }
  std::optional<Json> answer;
  int reads = 0;
};

class ControllerTest : public ::testing::Test {
 protected:
  TimePoint now_ = TimePoint(std::chrono::hours(1000));
  Clock clock_ = [this] { return now_; };
  MemoryApi api_{clock_};
  FaultyApi::Script script_;
  std::unique_ptr<FaultyApi> faulty_;
  SimulatedNode node_{api_, clock_};
  FakeProgress progress_;
  std::unique_ptr<Controller> controller_;

  void SetUp() override { new_controller(); }

  // As after a restart of the operator: nothing is remembered.
  void new_controller() {
    controller_.reset();
    faulty_ = std::make_unique<FaultyApi>(
        api_, [this](const ApiCall& call) { return script_ ? script_(call) : std::nullopt; });
    ControllerOptions options;
    options.watch = in_process_watch_settings();
    controller_ = std::make_unique<Controller>(*faulty_, &progress_, clock_, options);
  }

  void submit(Json spec_patch = Json::object(), int nodes = 2) {
    Json job = a_training_job("j", nodes);
    job["spec"].merge_patch(spec_patch);
    const auto created = api_.create(kTrainingJobs, kNs, job, {});
    ASSERT_TRUE(created) << created.error().message;
  }

  // Until nothing is due: controller and node in turn.
  void settle() {
    for (int i = 0; i < 30; ++i) {
      controller_->step();
      node_.step();
    }
    controller_->step();
  }

  void pass_time(Duration time) {
    const TimePoint end = now_ + time;
    while (now_ < end) {
      now_ = std::min(end, now_ + std::chrono::seconds(1));
      controller_->step();
      node_.step();
    }
    settle();
  }

  bool until(const std::function<bool()>& holds, Duration limit = std::chrono::minutes(20)) {
    const TimePoint end = now_ + limit;
    while (!holds() && now_ < end) pass_time(std::chrono::seconds(1));
    return holds();
  }

  TrainingJobStatus status() { return parse_training_job(*api_.get(kTrainingJobs, kNs, "j")).status; }
  std::vector<Json> pods() { return api_.list(kPods, kNs, {})->items; }
  bool running() { return status().phase == Phase::kRunning; }
  void end_all(int exit_code) {
    for (const Json& pod : pods()) node_.end(kNs, pod["metadata"]["name"], exit_code);
  }
  int count(Verb verb) {
    int n = 0;
    for (const ApiCall& call : faulty_->calls()) n += call.verb == verb;
    return n;
  }
  // A repeated one is the same object with a series.
  int events(const std::string& reason) {
    int n = 0;
    const auto all = api_.list(kEvents, kNs, {})->items;
    for (const Json& event : all) {
      if (event["reason"] == reason) n += event.contains("series") ? event["series"]["count"].get<int>() : 1;
    }
    return n;
  }
};

TEST_F(ControllerTest, AJobRunsAndCompletes) {
  submit();
  settle();
  EXPECT_TRUE(running());
  EXPECT_EQ(status().nodes.ready, 2);
  EXPECT_TRUE(api_.get(kServices, kNs, "j"));
  end_all(0);
  settle();
  EXPECT_EQ(status().phase, Phase::kComplete);
  EXPECT_TRUE(has_condition(status(), kConditionComplete));
}

TEST_F(ControllerTest, AFailureRestartsTheGangAndKeepsTheCause) {
  submit();
  settle();
  node_.end(kNs, "j-1", 9, "the disk is on fire");
  ASSERT_TRUE(until([&] { return running() && status().attempt == 1; }));
  EXPECT_EQ(status().restarts.counted, 1);
  ASSERT_TRUE(status().last_failure);
  EXPECT_EQ(status().last_failure->pod, "j-1");
  EXPECT_EQ(status().last_failure->exit_code, 9);
  EXPECT_THAT(status().last_failure->message, HasSubstr("the disk is on fire"));
  for (const Json& pod : pods()) EXPECT_EQ(pod["metadata"]["labels"][contract::kLabelAttempt], "1");
}

TEST_F(ControllerTest, TheBackoffLimitEndsIt) {
  submit({{"runPolicy", {{"backoffLimit", 1}}}});
  for (int attempt = 0; attempt < 2; ++attempt) {
    ASSERT_TRUE(until([&] { return running() && status().attempt == attempt; }));
    node_.end(kNs, "j-0", 1);
  }
  ASSERT_TRUE(until([&] { return status().phase == Phase::kFailed; }));
  pass_time(std::chrono::minutes(10));
  EXPECT_EQ(status().phase, Phase::kFailed) << "for ever";
}

TEST_F(ControllerTest, APodDeletedByHandIsADisruption) {
  submit();
  settle();
  api_.remove(kPods, kNs, "j-1", {});
  ASSERT_TRUE(until([&] { return running() && status().attempt == 1; }));
  EXPECT_EQ(status().restarts.counted, 0);
  EXPECT_EQ(status().restarts.disruptions, 1);
}

TEST_F(ControllerTest, SuspendEndsThePodsAndResumeBringsThemBack) {
  submit();
  settle();
  const std::string uid = (*api_.get(kTrainingJobs, kNs, "j"))["metadata"]["uid"];
  ASSERT_TRUE(api_.merge_patch(kTrainingJobs, kNs, "j", {{"spec", {{"suspend", true}}}}, {}));
  settle();
  EXPECT_TRUE(has_condition(status(), kConditionSuspended));
  EXPECT_TRUE(pods().empty());
  ASSERT_TRUE(api_.merge_patch(kTrainingJobs, kNs, "j", {{"spec", {{"suspend", false}, {"nodes", 3}}}}, {}));
  ASSERT_TRUE(until([&] { return running(); }));
  EXPECT_EQ(pods().size(), 3U);
  EXPECT_EQ((*api_.get(kTrainingJobs, kNs, "j"))["metadata"]["uid"], uid);
  EXPECT_EQ(status().restarts, RestartsStatus{});
}

TEST_F(ControllerTest, AJobSuspendedAtCreationHasNoPods) {
  submit({{"suspend", true}});
  pass_time(std::chrono::minutes(1));
  EXPECT_TRUE(pods().empty());
  EXPECT_TRUE(has_condition(status(), kConditionSuspended));
}

TEST_F(ControllerTest, TheDeadlineFiresThoughNothingHappens) {
  submit({{"runPolicy", {{"activeDeadlineSeconds", 300}}}});
  settle();
  const TimePoint start = now_;
  ASSERT_TRUE(until([&] { return status().phase == Phase::kFailed; }));
  EXPECT_LE(now_ - start, std::chrono::seconds(303));
  EXPECT_GE(now_ - start, std::chrono::seconds(299));
}

TEST_F(ControllerTest, TheTimeToLiveCountsAlsoWhileTheOperatorIsDown) {
  submit({{"runPolicy", {{"ttlSecondsAfterFinished", 60}}}});
  settle();
  end_all(0);
  settle();
  ASSERT_EQ(status().phase, Phase::kComplete);
  controller_.reset();
  now_ += std::chrono::minutes(5);
  new_controller();
  settle();
  EXPECT_FALSE(api_.get(kTrainingJobs, kNs, "j"));
  EXPECT_TRUE(pods().empty()) << "children go with it";
  EXPECT_FALSE(api_.get(kServices, kNs, "j"));
}

TEST_F(ControllerTest, CleanPodPolicySaysWhatIsLeft) {
  for (const auto& [policy, left] : {std::pair{"Running", 1U}, {"All", 0U}, {"None", 2U}}) {
    submit({{"runPolicy", {{"cleanPodPolicy", policy}, {"backoffLimit", 0}}}});
    settle();
    node_.end(kNs, "j-1", 1);
    ASSERT_TRUE(until([&] { return status().phase == Phase::kFailed; })) << policy;
    pass_time(std::chrono::seconds(5));
    EXPECT_EQ(pods().size(), left) << policy;
    ASSERT_TRUE(api_.remove(kTrainingJobs, kNs, "j", {}));
    settle();
  }
}

TEST_F(ControllerTest, ATakenNameIsNeverTouched) {
  ASSERT_TRUE(api_.create(kPods, kNs, a_pod("j-1"), {}));
  const Json stranger = *api_.get(kPods, kNs, "j-1");
  submit();
  for (int i = 0; i < 5; ++i) controller_->step();
  EXPECT_TRUE(has_condition(status(), kConditionStalled));
  EXPECT_EQ(find_condition(status(), kConditionStalled)->reason, "NameConflict");
  EXPECT_EQ(*api_.get(kPods, kNs, "j-1"), stranger);
  ASSERT_TRUE(api_.remove(kPods, kNs, "j-1", {}));
  EXPECT_TRUE(until([&] { return running(); }, std::chrono::minutes(2)));
}

TEST_F(ControllerTest, ARunningJobWhoseServicesNameIsTakenCostsFewRequestsAndRunsOn) {
  submit();
  settle();
  ASSERT_TRUE(running());
  ASSERT_TRUE(api_.remove(kServices, kNs, "j", {}));
  ASSERT_TRUE(api_.create(kServices, kNs, a_service("j"), {}));
  faulty_->forget_calls();
  pass_time(std::chrono::minutes(10));
  EXPECT_TRUE(running());
  EXPECT_LE(count(Verb::kCreate), 25) << "twice a minute, and an event";
  EXPECT_EQ(count(Verb::kUpdateStatus), 1) << "said once";
  EXPECT_THAT(find_condition(status(), kConditionRunning)->message, HasSubstr("Service named j"));
  ASSERT_TRUE(api_.remove(kServices, kNs, "j", {}));
  pass_time(std::chrono::minutes(1));
  const Json service = *api_.get(kServices, kNs, "j");
  EXPECT_EQ(metadata::controller(service)["uid"], (*api_.get(kTrainingJobs, kNs, "j"))["metadata"]["uid"]);
  EXPECT_EQ(find_condition(status(), kConditionRunning)->message, "All pods of the attempt run.");
}

TEST_F(ControllerTest, ARunningJobWhoseServiceIsRefusedForGoodRunsOn) {
  submit();
  settle();
  script_ = [](const ApiCall& call) -> std::optional<ApiFault> {
    if (call.verb != Verb::kCreate || call.plural != "services") return std::nullopt;
    return ApiFault{{422, "Invalid", "spec.clusterIP: Invalid value", std::nullopt}, false};
  };
  ASSERT_TRUE(api_.remove(kServices, kNs, "j", {}));
  faulty_->forget_calls();
  pass_time(std::chrono::minutes(20));
  EXPECT_TRUE(running());
  EXPECT_LE(count(Verb::kCreate), 16) << "with back-off";
  EXPECT_GE(count(Verb::kCreate), 5);
  EXPECT_THAT(find_condition(status(), kConditionRunning)->message, HasSubstr("spec.clusterIP"));
  end_all(0);
  settle();
  EXPECT_EQ(status().phase, Phase::kComplete);
}

// What one gang was refused is not said of the next.
TEST_F(ControllerTest, ARefusalIsForgottenWhereTheGangFails) {
  submit();
  settle();
  script_ = [](const ApiCall& call) -> std::optional<ApiFault> {
    if (call.verb != Verb::kCreate || call.plural != "services") return std::nullopt;
    return ApiFault{{422, "Invalid", "spec.clusterIP: Invalid value", std::nullopt}, false};
  };
  ASSERT_TRUE(api_.remove(kServices, kNs, "j", {}));
  settle();
  script_ = {};
  node_.end(kNs, "j-1", 1);
  ASSERT_TRUE(until([&] { return running() && status().attempt == 1; }, std::chrono::minutes(1)));
}

TEST_F(ControllerTest, AnEventWithoutAStatusIsToldOnceItsWriteIsDone) {
  submit({{"runPolicy", {{"terminationGracePeriodSeconds", 10}}}});
  settle();
  ASSERT_TRUE(running());
  node_.lost = true;
  bool refusing = true;
  script_ = [&](const ApiCall& call) -> std::optional<ApiFault> {
    if (call.verb != Verb::kRemove || call.plural != "pods" || !refusing) return std::nullopt;
    const auto pod = api_.get(kPods, kNs, call.name);
    if (!pod || !(*pod)["metadata"].contains("deletionTimestamp")) return std::nullopt;
    return ApiFault{{500, "InternalError", "no", std::nullopt}, false};
  };
  node_.end(kNs, "j-1", 1);
  pass_time(std::chrono::minutes(5));
  EXPECT_EQ(events("PodForceDeleted"), 0);
  refusing = false;
  pass_time(std::chrono::minutes(10));
  EXPECT_EQ(events("PodForceDeleted"), 1);
}

TEST_F(ControllerTest, AQuotaIsToldAndTriedAgain) {
  script_ = [](const ApiCall& call) -> std::optional<ApiFault> {
    if (call.verb != Verb::kCreate || call.name != "j-1") return std::nullopt;
    return ApiFault{{403, "Forbidden", "exceeded quota: gpus", std::nullopt}, false};
  };
  submit();
  pass_time(std::chrono::minutes(10));
  const TrainingJobStatus refused = status();
  EXPECT_THAT(status_to_json(refused).dump(), HasSubstr("exceeded quota: gpus"));
  EXPECT_FALSE(is_finished(refused));
  EXPECT_LE(count(Verb::kCreate), 40) << "with back-off";
  script_ = {};
  EXPECT_TRUE(until([&] { return running(); }));
}

TEST_F(ControllerTest, WhatIsRefusedIsRefusedOnceNotForEveryPod) {
  script_ = [](const ApiCall& call) -> std::optional<ApiFault> {
    if (call.verb != Verb::kCreate || call.plural != "pods") return std::nullopt;
    if (call.name.size() <= std::string("j-9").size()) return std::nullopt;
    return ApiFault{{403, "Forbidden", "exceeded quota: gpus", std::nullopt}, false};
  };
  submit(Json::object(), 100);
  settle();
  EXPECT_EQ(pods().size(), 10U);
  int tried = 0;
  for (const ApiCall& call : faulty_->calls()) tried += call.verb == Verb::kCreate && call.plural == "pods";
  EXPECT_EQ(tried, 11);
}

TEST_F(ControllerTest, WhatTheServerRefusesForGoodFailsTheJobWithItsWords) {
  script_ = [](const ApiCall& call) -> std::optional<ApiFault> {
    if (call.verb != Verb::kCreate || call.plural != "pods") return std::nullopt;
    return ApiFault{{422, "Invalid", "spec.containers[0].image: Required value", std::nullopt}, false};
  };
  submit();
  ASSERT_TRUE(until([&] { return status().phase == Phase::kFailed; }));
  EXPECT_THAT(status_to_json(status()).dump(), HasSubstr("spec.containers[0].image"));
  faulty_->forget_calls();
  pass_time(std::chrono::minutes(5));
  EXPECT_EQ(count(Verb::kCreate), 0);
}

TEST_F(ControllerTest, AConflictOnTheStatusIsDecidedAgainOnFreshState) {
  bool once = true;
  script_ = [&](const ApiCall& call) -> std::optional<ApiFault> {
    if (call.verb != Verb::kUpdateStatus || !std::exchange(once, false)) return std::nullopt;
    api_.merge_patch(kTrainingJobs, kNs, "j", {{"spec", {{"suspend", true}}}}, {});
    return std::nullopt;  // the real conflict is MemoryApi's
  };
  submit();
  settle();
  EXPECT_TRUE(has_condition(status(), kConditionSuspended));
  EXPECT_TRUE(pods().empty());
}

TEST_F(ControllerTest, AQuietJobCostsNoRequests) {
  submit();
  settle();
  faulty_->forget_calls();
  pass_time(std::chrono::minutes(10));
  EXPECT_LE(faulty_->calls().size(), 5U);
}

TEST_F(ControllerTest, ALifeCostsFewRequests) {
  submit();
  settle();
  end_all(0);
  settle();
  EXPECT_LE(count(Verb::kUpdateStatus), 8);
  // Service, two pods; events: Started, OutputNotKept, Running, Completed.
  EXPECT_EQ(count(Verb::kCreate), 7);
  EXPECT_EQ(count(Verb::kWatch), 4) << "one for each kind, which lists too";
  EXPECT_EQ(count(Verb::kList), 0);
}

TEST_F(ControllerTest, ProgressIsReadAndWrittenAtMostEveryFifteenSeconds) {
  Json job = a_training_job("j", 1);
  job["spec"].erase("template");
  job["spec"]["config"] = {
      {"task", "llm"}, {"base_model", "/m"}, {"project_name", "p"}, {"data", {{"path", "/d"}}}};
  const auto created = api_.create(kTrainingJobs, kNs, job, {});
  ASSERT_TRUE(created) << created.error().message;
  settle();
  ASSERT_TRUE(running());
  faulty_->forget_calls();
  progress_.reads = 0;
  for (int second = 0; second < 60; ++second) {
    progress_.answer = {{"attempt", 0},
                        {"workers",
                         {{{"rank", 0},
                           {"phase", "train"},
                           {"step", second + 1},
                           {"total_steps", 100},
                           {"loss", 2.5},
                           {"tokens_per_second", 10.0}}}},
                        {"last_checkpoint_step", nullptr}};
    pass_time(std::chrono::seconds(1));
  }
  EXPECT_GE(progress_.reads, 3);
  EXPECT_LE(progress_.reads, 6);
  EXPECT_LE(count(Verb::kUpdateStatus), 6);
  ASSERT_TRUE(status().training);
  EXPECT_GE(status().training->step, 30);
}

TEST_F(ControllerTest, EventsTellOfTheJob) {
  submit();
  settle();
  const auto events = api_.list(kEvents, kNs, {})->items;
  ASSERT_FALSE(events.empty());
  for (const Json& event : events) {
    EXPECT_EQ(event["regarding"]["name"], "j");
    EXPECT_FALSE(event["reason"].get<std::string>().empty());
  }
}

// At each step of a life: while the status cannot be written nobody is told.
TEST_F(ControllerTest, NothingIsToldBeforeItsStatusIsWritten) {
  bool refusing = false;
  script_ = [&](const ApiCall& call) -> std::optional<ApiFault> {
    if (!refusing || call.verb != Verb::kUpdateStatus) return std::nullopt;
    return ApiFault{{500, "InternalError", "no", std::nullopt}, false};
  };
  const auto told_only_once_written = [&](const std::string& reason) {
    refusing = true;
    pass_time(std::chrono::minutes(2));
    const int before = events(reason);
    refusing = false;
    EXPECT_TRUE(until([&] { return events(reason) == 1; })) << reason;
    return before;
  };
  submit({{"runPolicy", {{"backoffLimit", 1}}}});
  EXPECT_EQ(told_only_once_written("Started"), 0);
  ASSERT_TRUE(until([&] { return running(); }));
  node_.end(kNs, "j-1", 1);
  EXPECT_EQ(told_only_once_written("Restarting"), 0);
  ASSERT_TRUE(until([&] { return running() && status().attempt == 1; }));
  ASSERT_TRUE(api_.merge_patch(kTrainingJobs, kNs, "j", {{"spec", {{"suspend", true}}}}, {}));
  EXPECT_EQ(told_only_once_written("Suspended"), 0);
  ASSERT_TRUE(api_.merge_patch(kTrainingJobs, kNs, "j", {{"spec", {{"suspend", false}}}}, {}));
  EXPECT_EQ(told_only_once_written("Resumed"), 0);
  ASSERT_TRUE(until([&] { return running(); }));
  end_all(0);
  EXPECT_EQ(told_only_once_written("Completed"), 0);
}

TEST_F(ControllerTest, OwnStatusWritesDontWakeIt) {
  struct Adds : ControllerObserver {
    void added() override { ++count; }
    int count = 0;
  } adds;
  ControllerOptions options;
  options.watch = in_process_watch_settings();
  options.observer = &adds;
  controller_ = std::make_unique<Controller>(*faulty_, &progress_, clock_, options);
  submit({{"suspend", true}});
  settle();
  ASSERT_TRUE(has_condition(status(), kConditionSuspended));
  const int before = adds.count;
  EXPECT_LE(before, 2);
  Json job = *api_.get(kTrainingJobs, kNs, "j");
  job["status"]["restarts"]["counted"] = 7;
  ASSERT_TRUE(api_.update_status(kTrainingJobs, kNs, job, {}));
  settle();
  EXPECT_EQ(adds.count, before);
  ASSERT_TRUE(api_.merge_patch(kTrainingJobs, kNs, "j", {{"spec", {{"suspend", false}}}}, {}));
  settle();
  EXPECT_GT(adds.count, before);
}

// What the controller did is not yet in what it watches.
TEST_F(ControllerTest, AStaleCacheDoublesNoWork) {
  new_controller();
  bool stalled = true;
  faulty_->set_stream_script([&](const std::string& plural, const WatchEvent& event) {
    const bool ends_list = event.object.contains("/metadata/annotations"_json_pointer);
    return stalled && plural != "trainingjobs" && !ends_list ? StreamFault::kStall : StreamFault::kNone;
  });
  const auto calls = [&](Verb verb, const std::string& plural) {
    int n = 0;
    for (const ApiCall& call : faulty_->calls()) n += call.verb == verb && call.plural == plural;
    return n;
  };
  const auto wake = [&] {
    for (int i = 0; i < 5; ++i) {
      const Json note = {{"metadata", {{"labels", {{"turn", std::to_string(i)}}}}}};
      ASSERT_TRUE(api_.merge_patch(kTrainingJobs, kNs, "j", note, {}));
      controller_->step();
    }
  };
  submit();
  wake();
  EXPECT_EQ(calls(Verb::kCreate, "pods"), 2);
  EXPECT_EQ(calls(Verb::kCreate, "services"), 1);
  ASSERT_TRUE(api_.merge_patch(kTrainingJobs, kNs, "j", {{"spec", {{"suspend", true}}}}, {}));
  wake();
  EXPECT_EQ(calls(Verb::kRemove, "pods"), 2);
  EXPECT_TRUE(pods().empty());
}

TEST_F(ControllerTest, ChangesOfChildrenAreTakenTogetherWhereAskedFor) {
  ControllerOptions options;
  options.watch = in_process_watch_settings();
  options.child_batch = std::chrono::milliseconds(500);
  controller_ = std::make_unique<Controller>(*faulty_, &progress_, clock_, options);
  submit(Json::object(), 8);
  controller_->step();
  faulty_->forget_calls();
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(api_.bind_pod(kNs, "j-" + std::to_string(i), "node"));
    controller_->step();
  }
  EXPECT_EQ(faulty_->calls().size(), 0U);
  now_ += std::chrono::milliseconds(500);
  controller_->step();
  EXPECT_EQ(count(Verb::kUpdateStatus), 1);
}

TEST_F(ControllerTest, ABadJobDoesNotStarveOthers) {
  script_ = [](const ApiCall& call) -> std::optional<ApiFault> {
    if (!call.is_write() || call.name.rfind("bad", 0) != 0) return std::nullopt;
    return ApiFault{{500, "InternalError", "no", std::nullopt}, false};
  };
  ASSERT_TRUE(api_.create(kTrainingJobs, kNs, a_training_job("bad", 2), {}));
  submit();
  settle();
  EXPECT_TRUE(running());
  faulty_->forget_calls();
  pass_time(std::chrono::minutes(30));
  EXPECT_LE(faulty_->calls().size(), 40U) << "and is tried ever more seldom";
  EXPECT_GE(faulty_->calls().size(), 5U);
}

TEST_F(ControllerTest, AnObjectThatCannotBeReadHoldsUpNobody) {
  Json odd = a_training_job("odd");
  odd["metadata"]["namespace"] = kNs;
  odd["metadata"]["uid"] = "odd";
  odd["spec"] = 7;
  api_.restore(kTrainingJobs, odd);
  submit();
  settle();
  EXPECT_TRUE(running());
}

TEST_F(ControllerTest, OnlyListedNamespacesAreWatched) {
  ControllerOptions options;
  options.watch = in_process_watch_settings();
  options.namespaces = {kNs, "other"};
  controller_ = std::make_unique<Controller>(*faulty_, &progress_, clock_, options);
  submit();
  ASSERT_TRUE(api_.create(kTrainingJobs, "other", a_training_job("o"), {}));
  ASSERT_TRUE(api_.create(kTrainingJobs, "foreign", a_training_job("f"), {}));
  settle();
  EXPECT_TRUE(running());
  EXPECT_TRUE(api_.get(kPods, "other", "o-0"));
  EXPECT_FALSE(api_.get(kPods, "foreign", "f-0"));
  for (const ApiCall& call : faulty_->calls()) EXPECT_TRUE(call.ns == kNs || call.ns == "other");
}

TEST_F(ControllerTest, PodsAreFoundByTheirNode) {
  ControllerOptions options;
  options.watch = in_process_watch_settings();
  options.watch_nodes = true;
  controller_ = std::make_unique<Controller>(*faulty_, &progress_, clock_, options);
  ASSERT_TRUE(api_.create(kNodes, "", {{"metadata", {{"name", "node"}}}}, {}));
  submit();
  settle();
  EXPECT_EQ(controller_->view().pods_on_node("node").size(), 2U);
  EXPECT_TRUE(controller_->view().node("node"));
  EXPECT_FALSE(controller_->view().node("other"));
}

TEST_F(ControllerTest, RunsUntilItIsAskedToStop) {
  submit();
  std::jthread thread([&](std::stop_token stop) { controller_->run(stop); });
  for (int i = 0; i < 3000 && pods().size() < 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  thread.request_stop();
  thread.join();
  EXPECT_EQ(pods().size(), 2U);
}

// Dies before each of its writes in turn; a fresh controller must bring the job to the same end with the
// failure counted once.
TEST_F(ControllerTest, DyingBetweenAnyTwoWritesLosesAndDoublesNothing) {
  for (int writes = 0; writes < 40; ++writes) {
    SCOPED_TRACE("dies after " + std::to_string(writes) + " writes");
    new_controller();
    faulty_->die_after_writes(writes);
    submit();
    bool failed_once = false;
    for (int second = 0; second < 300 && status().phase != Phase::kComplete; ++second) {
      pass_time(std::chrono::seconds(1));
      if (faulty_->dead()) new_controller();
      if (pods().size() != 2 || !running()) continue;
      if (!failed_once) {
        node_.end(kNs, "j-1", 9);
        failed_once = true;
      } else if (status().attempt == 1) {
        end_all(0);
      }
    }
    EXPECT_EQ(status().phase, Phase::kComplete);
    EXPECT_EQ(status().restarts.counted, 1);
    EXPECT_EQ(status().restarts.disruptions, 0);
    EXPECT_EQ(status().attempt, 1);
    ASSERT_TRUE(status().last_failure);
    EXPECT_EQ(status().last_failure->exit_code, 9);
    ASSERT_TRUE(api_.remove(kTrainingJobs, kNs, "j", {}));
    settle();
    EXPECT_TRUE(pods().empty());
  }
}

}  // namespace
}  // namespace coxswain
