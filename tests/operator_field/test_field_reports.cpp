// What users of training operators have reported, each as a test under its name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/parse.h"
#include "tests/client/objects.h"
#include "tests/operator_field/simulated_cluster.h"

namespace coxswain::testing {
namespace {

using namespace resources;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

class FieldReport : public ::testing::Test {
 protected:
  bool running(int64_t attempt = 0) {
    return cluster.phase() == "Running" && cluster.status().attempt == attempt;
  }
  void submit(int nodes, const Json& spec = Json::object(), const Json& metadata = Json::object()) {
    const auto created = cluster.submit("j", nodes, spec, metadata);
    ASSERT_TRUE(created) << created.error().message;
    cluster.settle();
  }
  void patch(const Json& spec) {
    const auto patched = cluster.api.merge_patch(kTrainingJobs, kNs, "j", {{"spec", spec}}, {});
    ASSERT_TRUE(patched) << patched.error().message;
  }
  SimulatedCluster cluster;
};

TEST_F(FieldReport, AJobNameTooLongOrWithADotIsRefusedAtAdmissionWithTheLimitNamed) {
  const auto long_name = cluster.submit(std::string(61, 'a'), 11);
  ASSERT_FALSE(long_name);
  EXPECT_EQ(long_name.error().code, 422);
  EXPECT_THAT(long_name.error().message, HasSubstr("63"));
  const auto dot = cluster.submit("a.b", 1);
  ASSERT_FALSE(dot);
  EXPECT_THAT(dot.error().message, HasSubstr("metadata.name"));
}

TEST_F(FieldReport, NodesOfZeroOrBelowAndNoProcessesAreRefusedAtAdmission) {
  EXPECT_FALSE(cluster.submit("j", 0));
  EXPECT_FALSE(cluster.submit("j", -1));
  EXPECT_FALSE(cluster.submit("j", 1, {{"processesPerNode", 0}}));
}

TEST_F(FieldReport, ATemplateThatTheServerRejectsWith422FailsTheJobWithItsMessageAndIsNotRetried) {
  cluster.script = [](const ApiCall& call) -> std::optional<ApiFault> {
    if (call.verb != Verb::kCreate || call.plural != "pods") return std::nullopt;
    return ApiFault{{422, "Invalid", "spec.volumes[0].name: Required value", std::nullopt}, false};
  };
  submit(2);
  EXPECT_EQ(cluster.phase(), "Failed");
  EXPECT_THAT(cluster.said(kConditionStalled), HasSubstr("spec.volumes[0].name"));
  cluster.faulty->forget_calls();
  cluster.pass_time(1h);
  EXPECT_EQ(cluster.count(Verb::kCreate), 0);
}

TEST_F(FieldReport, AServiceOrPodOfThatNameThatIsNotOursStallsTheJobAndIsNeverTouched) {
  ASSERT_TRUE(cluster.api.create(kServices, kNs, a_service("j"), {}));
  const Json stranger = *cluster.api.get(kServices, kNs, "j");
  submit(2);
  cluster.pass_time(10min);
  EXPECT_EQ(cluster.reason(kConditionStalled), "NameConflict");
  EXPECT_EQ(*cluster.api.get(kServices, kNs, "j"), stranger);
  ASSERT_TRUE(cluster.api.remove(kServices, kNs, "j", {}));
  EXPECT_TRUE(cluster.until([&] { return running(); }, 2min));
}

TEST_F(FieldReport, AServiceCalledCoxswainInTheNamespaceIsHarmless) {
  ASSERT_TRUE(cluster.api.create(kServices, kNs, a_service("coxswain"), {}));
  submit(2);
  EXPECT_EQ(cluster.phase(), "Running");
  for (const Json& pod : cluster.pods()) EXPECT_EQ(pod["spec"]["enableServiceLinks"], false);
}

TEST_F(FieldReport, PodsOfTheLastAttemptThatStillTerminateAreWaitedFor) {
  submit(2);
  const std::string node = cluster.node_of("j-0");
  cluster.end("j-1", 1);
  cluster.lose_node(node);  // nobody confirms its deletion
  cluster.pass_time(30s);
  ASSERT_EQ(cluster.pods().size(), 1U) << "j-1 is not created beside it";
  EXPECT_EQ(cluster.reason(kConditionReconciling), "WaitingForOldPods");
  EXPECT_FALSE(has_condition(cluster.status(), kConditionFailed));
  cluster.bring_back(node);
  EXPECT_TRUE(cluster.until([&] { return running(1); }));
}

TEST_F(FieldReport, TheOperatorDiesBetweenDeletingFailedPodsAndCountingTheFailure) {
  for (int writes = 0; writes < 12; ++writes) {
    SCOPED_TRACE("dies after " + std::to_string(writes) + " writes");
    cluster.restart_operator();
    submit(3);
    ASSERT_TRUE(cluster.until([&] { return running(); }));
    cluster.faulty->die_after_writes(writes);
    cluster.end("j-2", 9, "the disk is on fire");
    cluster.pass_time(5s);
    cluster.restart_operator();
    ASSERT_TRUE(cluster.until([&] { return running(1); }));
    EXPECT_EQ(cluster.status().restarts.counted, 1);
    EXPECT_THAT(cluster.status().last_failure->message, HasSubstr("the disk is on fire"));
    ASSERT_TRUE(cluster.api.remove(kTrainingJobs, kNs, "j", {}));
    cluster.settle();
  }
}

TEST_F(FieldReport, RankThreesBadConfigurationIsTheCauseThoughItsPeersDieOfConnectionResetFirst) {
  submit(4, with_config());
  for (const char* peer : {"j-0", "j-1", "j-2"}) cluster.end(peer, 76, "connection reset by peer");
  cluster.pass_time(5s);
  cluster.end("j-3", 2, "learning_rate must be above 0");
  ASSERT_TRUE(cluster.until([&] { return cluster.phase() == "Failed"; }, 1min));
  EXPECT_EQ(cluster.status().last_failure->cause, "BadInput");
  EXPECT_EQ(cluster.status().last_failure->node_rank, 3);
  EXPECT_THAT(cluster.said(kConditionFailed), HasSubstr("learning_rate"));
}

TEST_F(FieldReport, AWorkerPodDeletedByHandRestartsTheGangAndIsNotCounted) {
  submit(3);
  ASSERT_TRUE(cluster.api.remove(kPods, kNs, "j-2", {}));
  ASSERT_TRUE(cluster.until([&] { return running(1); }, 2min));
  EXPECT_EQ(cluster.pods().size(), 3U);
  EXPECT_EQ(cluster.status().restarts.disruptions, 1);
  EXPECT_EQ(cluster.status().restarts.counted, 0);
}

TEST_F(FieldReport, WhenAWorkerFailsForGoodTheMasterDoesNotKeepItsGpu) {
  submit(3, {{"runPolicy", {{"backoffLimit", 0}}}});
  cluster.end("j-2", 1);
  cluster.pass_time(10s);
  EXPECT_EQ(cluster.phase(), "Failed");
  for (const Json& pod : cluster.pods())
    EXPECT_EQ(pod["status"]["phase"], "Failed") << pod["metadata"]["name"];
}

TEST_F(FieldReport, WhatStillRunsWhenTheJobSucceedsIsCleanedByDefault) {
  submit(2);
  cluster.end("j-0", 0);
  cluster.end("j-1", 0);
  cluster.set_pod_status("j-1", {{"phase", "Running"}});  // a sidecar stays
  cluster.pass_time(10s);
  EXPECT_EQ(cluster.phase(), "Complete");
  EXPECT_EQ(cluster.pods().size(), 1U);
}

TEST_F(FieldReport, APodThatTerminatesForEverOnADownNodeIsForcedAndTheGangRestartsElsewhere) {
  submit(2, {{"runPolicy", {{"terminationGracePeriodSeconds", 3600}}}});
  const std::string node = cluster.node_of("j-1");
  cluster.lose_node(node);
  const TimePoint start = cluster.now;
  ASSERT_TRUE(cluster.until([&] { return running(1); }, 10min));
  // Told after 40 s, given up 60 s later, forced 60 s after that, back-off.
  EXPECT_LE(cluster.now - start, 3min);
  EXPECT_EQ(cluster.status().last_failure->cause, "NodeLost");
  EXPECT_EQ(cluster.status().restarts.disruptions, 1);
  EXPECT_EQ(cluster.status().restarts.counted, 0);
  for (const Json& pod : cluster.pods()) EXPECT_NE(pod["spec"]["nodeName"], node);
}

TEST_F(FieldReport, WhenNoNodeIsReadyNoGangIsTornDown) {
  submit(2);
  for (const char* node : {"node-0", "node-1", "node-2"}) cluster.lose_node(node);
  cluster.pass_time(30min);
  EXPECT_EQ(cluster.status().attempt, 0) << "the control plane was cut off, the pods run";
  for (const char* node : {"node-0", "node-1", "node-2"}) cluster.bring_back(node);
  cluster.pass_time(10min);
  EXPECT_TRUE(running());
}

TEST_F(FieldReport, AFailedPodOfAGracefulNodeShutdownIsADisruption) {
  submit(2, {{"runPolicy", {{"backoffLimit", 0}}}});
  cluster.end("j-1", 143);
  cluster.set_pod_status("j-1", {{"reason", "Terminated"},
                                 {"message", "Pod was terminated in response to imminent node shutdown."}});
  ASSERT_TRUE(cluster.until([&] { return running(1); }, 2min));
  EXPECT_EQ(cluster.status().last_failure->cause, "NodeShutdown");
  EXPECT_EQ(cluster.status().restarts.disruptions, 1);
}

TEST_F(FieldReport, AnExitCodeThatIsNotRetriedFailsAtOnceAndNeverSaysRestarting) {
  submit(2, with_config());
  cluster.end("j-1", 2, "no such key: lerning_rate");
  for (int second = 0; second < 10; ++second) {
    cluster.pass_time(1s);
    EXPECT_FALSE(has_condition(cluster.status(), kConditionRestarting));
  }
  EXPECT_EQ(cluster.reason(kConditionFailed), "BadInput");
  EXPECT_EQ(cluster.status().attempt, 0);
}

TEST_F(FieldReport, TheBackoffLimitCountsReplacedPodsOverRestartsOfTheOperator) {
  submit(2, {{"runPolicy", {{"backoffLimit", 2}}}});
  for (int64_t attempt = 0; attempt < 3; ++attempt) {
    ASSERT_TRUE(cluster.until([&] { return running(attempt); })) << attempt;
    cluster.end("j-0", 1);
    cluster.restart_operator();
    cluster.pass_time(5s);
  }
  EXPECT_EQ(cluster.reason(kConditionFailed), "BackoffLimitExceeded");
  EXPECT_EQ(cluster.status().restarts.counted, 2);
}

TEST_F(FieldReport, TheActiveDeadlineFiresOnTimeWhileNothingElseHappens) {
  submit(2, {{"runPolicy", {{"activeDeadlineSeconds", 300}}}});
  const TimePoint start = cluster.now;
  ASSERT_TRUE(cluster.until([&] { return cluster.phase() == "Failed"; }));
  EXPECT_GE(cluster.now - start, 299s);
  EXPECT_LE(cluster.now - start, 302s);
  EXPECT_EQ(cluster.reason(kConditionFailed), "DeadlineExceeded");
}

TEST_F(FieldReport, TheTimeToLiveDeletesOnTimeAlsoIfTheOperatorWasDown) {
  submit(1, {{"runPolicy", {{"ttlSecondsAfterFinished", 60}}}});
  cluster.end_all("j", 0);
  cluster.pass_time(59s);
  EXPECT_TRUE(cluster.api.get(kTrainingJobs, kNs, "j"));
  cluster.now += 10min;  // the operator is down
  cluster.restart_operator();
  cluster.settle();
  EXPECT_FALSE(cluster.api.get(kTrainingJobs, kNs, "j"));
  EXPECT_TRUE(cluster.pods().empty());
}

TEST_F(FieldReport, TheTimeToLiveOfAJobThatArgoAppliesMakesNoLoopOfDeletingAndTrainingAgain) {
  submit(
      2, {{"runPolicy", {{"ttlSecondsAfterFinished", 60}}}},
      {{"annotations", {{"argocd.argoproj.io/tracking-id", "app:training.coxswain.dev/TrainingJob:ns/j"}}}});
  cluster.end_all("j", 0);
  cluster.pass_time(2min);
  EXPECT_TRUE(cluster.api.get(kTrainingJobs, kNs, "j"));
  EXPECT_TRUE(cluster.pods().empty());
  EXPECT_FALSE(cluster.api.get(kServices, kNs, "j"));
  EXPECT_TRUE(cluster.has_event("TimeToLiveOver", "Argo CD"));
  cluster.faulty->forget_calls();
  cluster.pass_time(24h);
  EXPECT_EQ(cluster.phase(), "Complete");
  EXPECT_LE(cluster.faulty->calls().size(), 5U);
}

TEST_F(FieldReport, AFailedJobThatIsReconciledAgainStaysFailedAndItsBudgetIsNotReset) {
  submit(2, {{"runPolicy", {{"backoffLimit", 1}}}});
  for (int64_t attempt = 0; attempt < 2; ++attempt) {
    ASSERT_TRUE(cluster.until([&] { return running(attempt); }));
    cluster.end("j-0", 1);
  }
  ASSERT_TRUE(cluster.until([&] { return cluster.phase() == "Failed"; }));
  const TrainingJobStatus before = cluster.status();
  cluster.restart_operator();
  patch({{"suspend", true}});
  cluster.pass_time(1min);
  patch({{"suspend", false}, {"runPolicy", {{"activeDeadlineSeconds", 99999}}}});
  cluster.pass_time(10min);
  EXPECT_EQ(cluster.phase(), "Failed");
  EXPECT_EQ(cluster.status().restarts, before.restarts);
  EXPECT_EQ(cluster.status().attempt, before.attempt);
}

struct Trouble {
  const char* kubelet;
  const char* message;
  const char* reason;
};

class FieldReportTrouble : public FieldReport, public ::testing::WithParamInterface<Trouble> {};

TEST_P(FieldReportTrouble, IsNamedInAConditionAtOnceAndEndedByTheStartupDeadline) {
  cluster.hold_up("j-1", GetParam().kubelet, GetParam().message);
  submit(2, {{"runPolicy", {{"startupDeadlineSeconds", 600}, {"backoffLimit", 0}}}});
  EXPECT_EQ(cluster.reason(kConditionReconciling), GetParam().reason);
  EXPECT_THAT(cluster.said(kConditionReconciling), HasSubstr(GetParam().message));
  EXPECT_THAT(cluster.said(kConditionReconciling), HasSubstr(GetParam().kubelet));
  EXPECT_TRUE(cluster.has_event(GetParam().reason, "j-1"));
  cluster.pass_time(9min);
  EXPECT_EQ(cluster.phase(), "Starting");
  cluster.pass_time(2min);
  EXPECT_EQ(cluster.phase(), "Failed");
  EXPECT_THAT(cluster.said(kConditionFailed), HasSubstr(GetParam().message));
  EXPECT_TRUE(cluster.pods().empty()) << "what was created is released";
}

INSTANTIATE_TEST_SUITE_P(
    Kubelet, FieldReportTrouble,
    ::testing::Values(Trouble{"ErrImagePull", "manifest unknown", "ImagePullFailed"},
                      Trouble{"ImagePullBackOff", "Back-off pulling image", "ImagePullFailed"},
                      Trouble{"CreateContainerConfigError", "secret s not found", "ContainerConfigError"},
                      Trouble{"CreateContainerError", "no command specified", "ContainerStartError"}),
    [](const auto& info) { return std::string(info.param.kubelet); });

TEST_F(FieldReport, UnschedulableIsNamedWithTheSchedulersSentenceAndEndedByTheStartupDeadline) {
  cluster.unschedulable = {"j-1"};
  submit(2, {{"runPolicy", {{"startupDeadlineSeconds", 600}}}});
  EXPECT_EQ(cluster.reason(kConditionReconciling), "Unschedulable");
  EXPECT_THAT(cluster.said(kConditionReconciling), HasSubstr("3 Insufficient nvidia.com/gpu"));
  cluster.pass_time(10min + 5s);
  EXPECT_EQ(cluster.status().restarts.counted, 1);
  EXPECT_EQ(cluster.status().last_failure->cause, "StartupDeadlineExceeded");
  EXPECT_EQ(cluster.status().last_failure->pod, "j-1");
  cluster.unschedulable.clear();
  EXPECT_TRUE(cluster.until([&] { return running(1); }));
}

TEST_F(FieldReport, AConflictOfStatusWritesIsDecidedOnFreshStateAndNeverLeavesAStaleRunning) {
  submit(2);
  bool once = true;
  cluster.script = [&](const ApiCall& call) -> std::optional<ApiFault> {
    if (call.verb != Verb::kUpdateStatus || !std::exchange(once, false)) return std::nullopt;
    patch({{"suspend", true}});
    return std::nullopt;  // the conflict itself is the API's
  };
  cluster.end("j-1", 1);
  cluster.pass_time(30s);
  EXPECT_FALSE(once);
  EXPECT_EQ(cluster.phase(), "Suspended");
  EXPECT_FALSE(has_condition(cluster.status(), kConditionRunning));
}

TEST_F(FieldReport, AResumeWithAnotherNodeSelectorAndTolerationsIsRebuiltFromTheSpecAndNotMerged) {
  const Json trainer = {{"name", "trainer"}, {"image", "i"}, {"command", {"c"}}};
  submit(1, {{"template",
              {{"spec", {{"containers", {trainer}}, {"nodeSelector", {{"zone", "a"}, {"disk", "ssd"}}}}}}}});
  patch({{"suspend", true}});
  cluster.pass_time(10s);
  ASSERT_EQ(cluster.phase(), "Suspended");
  patch({{"suspend", false},
         {"template",
          {{"spec",
            {{"nodeSelector", {{"zone", "b"}, {"disk", nullptr}}}, {"tolerations", {{{"key", "gpu"}}}}}}}}});
  ASSERT_TRUE(cluster.until([&] { return running(1); }));
  const Json pod = cluster.pod("j-0");
  EXPECT_EQ(pod["spec"]["nodeSelector"], Json({{"zone", "b"}}));
  EXPECT_EQ(pod["spec"]["tolerations"], Json::array({{{"key", "gpu"}}}));
}

TEST_F(FieldReport, AJobSuspendedAtCreationHasNoPods) {
  submit(2, {{"suspend", true}});
  cluster.pass_time(10min);
  EXPECT_TRUE(cluster.pods().empty());
  EXPECT_EQ(cluster.phase(), "Suspended");
  EXPECT_EQ(cluster.count(Verb::kCreate, "pods"), 0);
}

TEST_F(FieldReport, AWatchThatCloses410OrNotIsResumedWithoutABusyLoopAndMissesNothing) {
  submit(2);
  for (const bool expired : {false, true}) {
    cluster.faulty->forget_calls();
    if (expired) cluster.api.compact();
    cluster.api.end_watches(expired);
    cluster.pass_time(1min);
    EXPECT_LE(cluster.faulty->calls().size(), 20U);
  }
  cluster.end("j-1", 1);
  EXPECT_TRUE(cluster.until([&] { return running(1); }));
}

TEST_F(FieldReport, AMasterAddrARankOrAVolumeAtOurPathsStaysOursAndAWarningSaysSo) {
  submit(
      2,
      with_config(
          {{"env", {{{"name", "MASTER_ADDR"}, {"value", "elsewhere"}}, {{"name", "RANK"}, {"value", "7"}}}},
           {"volumes", {{{"name", "mine"}, {"emptyDir", Json::object()}}}},
           {"volumeMounts", {{{"name", "mine"}, {"mountPath", "/output"}}}}}));
  for (const char* what : {"MASTER_ADDR", "RANK", "/output"}) {
    EXPECT_TRUE(cluster.has_event("TemplateOverridden", what)) << what;
  }
  const std::string pod = cluster.pod("j-1").dump();
  EXPECT_EQ(pod.find("elsewhere"), std::string::npos);
  EXPECT_THAT(pod, HasSubstr("j-0.j.ns.svc"));
}

// 262144 bytes hold the annotation that client-side `kubectl apply` writes the whole object into.
TEST_F(FieldReport, TheCrdAppliesClientSideWithoutAnAnnotationThatIsTooLong) {
  const auto documents = load_yaml_file("crds/trainingjob.yaml");
  ASSERT_TRUE(documents);
  EXPECT_LT(documents->front().dump().size(), 262144U / 2);
}

}  // namespace
}  // namespace coxswain::testing
