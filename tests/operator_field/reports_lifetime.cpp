// Reports of deadlines, of finished jobs, of suspended ones, and of what people do to a job's children.
#include <gmock/gmock.h>

#include <algorithm>

#include "contract/contract.h"
#include "operator/api/parse.h"
#include "tests/operator_field/field_cluster.h"

namespace coxswain::testing {
namespace {

using namespace resources;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

bool is_there(FieldCluster& cluster, const Resource& resource, const std::string& name) {
  return cluster.server().get(resource, cluster.ns(), name).has_value();
}

void end_all(FieldCluster& cluster, int exit_code) {
  for (const Json& pod : cluster.pods()) cluster.end(pod["metadata"]["name"], exit_code);
}

// --- Deadlines

FIELD_REPORT(TheActiveDeadlineFiresOnTimeWhileNothingElseHappens) {
  ASSERT_TRUE(cluster.submit(2, {{"runPolicy", {{"activeDeadlineSeconds", 8}}}}));
  ASSERT_TRUE(cluster.until_phase("Failed"));
  EXPECT_EQ(cluster.reason(kConditionFailed), "DeadlineExceeded");
  const TrainingJobStatus status = cluster.status();
  EXPECT_GE(*status.completion_time - *status.start_time, 8s);
  if (cluster.is_simulated()) {
    EXPECT_LE(*status.completion_time - *status.start_time, 9s);
  }
}

FIELD_REPORT(TheActiveDeadlineFiresThoughTheOperatorWasDownWhenItPassed) {
  ASSERT_TRUE(cluster.submit(2, {{"runPolicy", {{"activeDeadlineSeconds", 15}}}}));
  ASSERT_TRUE(cluster.runs());
  cluster.operator_is_down_for(15s);
  ASSERT_TRUE(cluster.until_phase("Failed"));
  EXPECT_EQ(cluster.reason(kConditionFailed), "DeadlineExceeded");
}

FIELD_REPORT(TheStartupDeadlineCountsOverARestartOfTheOperator) {
  cluster.make_unschedulable("j-1");
  ASSERT_TRUE(cluster.submit(2, {{"runPolicy", {{"startupDeadlineSeconds", 12}, {"backoffLimit", 0}}}}));
  ASSERT_TRUE(cluster.until([&] { return cluster.reason(kConditionReconciling) == "Unschedulable"; }));
  const auto began = cluster.status().startup_time;
  cluster.restart_operator();
  ASSERT_TRUE(cluster.until_phase("Failed"));
  EXPECT_EQ(cluster.status().startup_time, began);
  EXPECT_GE(*cluster.status().completion_time - *began, 12s);
  if (cluster.is_simulated()) {
    EXPECT_LE(*cluster.status().completion_time - *began, 13s);
  }
}

// --- Finished

FIELD_REPORT(TheTimeToLiveDeletesOnTimeAlsoIfTheOperatorWasDown) {
  ASSERT_TRUE(cluster.submit(1, {{"runPolicy", {{"ttlSecondsAfterFinished", 6}}}}));
  ASSERT_TRUE(cluster.runs());
  end_all(cluster, 0);
  ASSERT_TRUE(cluster.until_phase("Complete"));
  cluster.operator_is_down_for(7s);
  EXPECT_TRUE(cluster.until([&] { return cluster.job().is_null(); }));
  EXPECT_TRUE(cluster.until([&] { return cluster.pods().empty(); }));
}

FIELD_REPORT(TheTimeToLiveOfAJobThatArgoAppliesMakesNoLoopOfDeletingAndTrainingAgain) {
  ASSERT_TRUE(cluster.submit(
      2, {{"runPolicy", {{"ttlSecondsAfterFinished", 4}}}},
      {{"annotations", {{"argocd.argoproj.io/tracking-id", "app:training.coxswain.dev/TrainingJob:ns/j"}}}}));
  ASSERT_TRUE(cluster.runs());
  end_all(cluster, 0);
  ASSERT_TRUE(cluster.until([&] { return cluster.has_event("TimeToLiveOver", "Argo CD"); }));
  EXPECT_TRUE(cluster.until([&] { return cluster.pods().empty() && !is_there(cluster, kServices, "j"); }));
  ASSERT_TRUE(cluster.until([&] { return cluster.status().nodes.active == 0; }));
  cluster.let_pass(1min);
  cluster.forget_calls();
  cluster.let_pass(24h);
  EXPECT_EQ(cluster.phase(), "Complete");
  EXPECT_EQ(cluster.writes(), 0);
}

FIELD_REPORT(TheTimeToLiveOfAJobThatFluxAppliesRemovesItsChildrenOnly) {
  ASSERT_TRUE(cluster.submit(2, with_config({{"runPolicy", {{"ttlSecondsAfterFinished", 1}}}}),
                             {{"labels", {{"kustomize.toolkit.fluxcd.io/name", "apps"}}}}));
  ASSERT_TRUE(cluster.runs());
  end_all(cluster, 0);
  ASSERT_TRUE(cluster.until([&] { return cluster.has_event("TimeToLiveOver", "Flux"); }));
  EXPECT_TRUE(cluster.until([&] {
    return cluster.pods().empty() && !is_there(cluster, kServices, "j") &&
           !is_there(cluster, kConfigMaps, "j-config-0");
  }));
  EXPECT_EQ(cluster.phase(), "Complete");
}

FIELD_REPORT(AFinishedJobThatAFreshOperatorSeesIsLeftAlone) {
  ASSERT_TRUE(cluster.submit(2));
  ASSERT_TRUE(cluster.runs());
  end_all(cluster, 0);
  ASSERT_TRUE(cluster.until_phase("Complete"));
  cluster.let_pass(1min);
  const Json before = cluster.job();
  cluster.restart_operator();
  cluster.forget_calls();
  cluster.let_pass(1h);
  EXPECT_EQ(cluster.job(), before);
  EXPECT_EQ(cluster.writes(), 0);
  // Also where its pods were cleaned by hand.
  for (const Json& pod : cluster.pods()) {
    ASSERT_TRUE(cluster.server().remove(kPods, cluster.ns(), pod["metadata"]["name"], {}));
  }
  cluster.let_pass(1h);
  EXPECT_EQ(cluster.phase(), "Complete");
  EXPECT_EQ(cluster.creates("pods"), 0);
}

// --- Suspended and resumed

FIELD_REPORT(AResumeWithAnotherNodeSelectorAndTolerationsIsRebuiltFromTheSpecAndNotMerged) {
  const Json trainer = {{"name", "trainer"}, {"image", "i"}, {"command", {"c"}}};
  ASSERT_TRUE(cluster.submit(
      1, {{"template",
           {{"spec", {{"containers", {trainer}}, {"nodeSelector", {{"zone", "a"}, {"disk", "ssd"}}}}}}}}));
  ASSERT_TRUE(cluster.runs());
  ASSERT_TRUE(cluster.patch({{"suspend", true}}));
  ASSERT_TRUE(cluster.until_phase("Suspended"));
  EXPECT_TRUE(cluster.pods().empty());
  ASSERT_TRUE(cluster.patch({{"suspend", false},
                             {"template",
                              {{"spec",
                                {{"nodeSelector", {{"zone", "b"}, {"disk", nullptr}}},
                                 {"tolerations", {{{"key", "gpu"}, {"operator", "Exists"}}}}}}}}}));
  ASSERT_TRUE(cluster.runs(1));
  const Json spec = cluster.pod("j-0")["spec"];
  EXPECT_EQ(spec["nodeSelector"], Json({{"zone", "b"}}));
  const Json tolerations = spec["tolerations"];  // the API server adds its own
  EXPECT_EQ(std::ranges::count_if(tolerations, [](const Json& one) { return one.value("key", "") == "gpu"; }),
            1);
}

// --- Deleted and made again

FIELD_REPORT(AJobThatIsMadeAgainUnderItsNameWaitsForTheOldOnesPods) {
  ASSERT_TRUE(cluster.submit(2));
  ASSERT_TRUE(cluster.runs());
  const std::string node = cluster.node_of("j-1");
  cluster.lose_node(node);  // so that one pod is long about its end
  ASSERT_TRUE(cluster.server().remove(kTrainingJobs, cluster.ns(), "j", {}));
  const auto created = cluster.submit(2);
  ASSERT_TRUE(created) << created.error().message;
  ASSERT_TRUE(cluster.until([&] { return cluster.reason(kConditionReconciling) == "WaitingForOldJob"; }));
  cluster.let_pass(20s);
  EXPECT_EQ(cluster.phase(), "Starting") << "what is only not yet gone is nobody's to act on";
  cluster.bring_back(node);
  ASSERT_TRUE(cluster.runs());
  for (const Json& pod : cluster.pods()) {
    EXPECT_EQ(pod["metadata"]["ownerReferences"][0]["uid"], created->at("metadata")["uid"]);
  }
}

// --- Children that people delete

FIELD_REPORT(AServiceDeletedByHandIsMadeAgainAndTrainingGoesOn) {
  ASSERT_TRUE(cluster.submit(2));
  ASSERT_TRUE(cluster.runs());
  const std::string uid = cluster.server().get(kServices, cluster.ns(), "j")->at("metadata")["uid"];
  ASSERT_TRUE(cluster.server().remove(kServices, cluster.ns(), "j", {}));
  ASSERT_TRUE(cluster.until([&] {
    const auto service = cluster.server().get(kServices, cluster.ns(), "j");
    return service && service->at("metadata")["uid"] != uid;
  }));
  EXPECT_TRUE(cluster.runs());
  EXPECT_EQ(cluster.status().restarts, RestartsStatus());
}

FIELD_REPORT(AConfigMapDeletedByHandIsMadeAgainAndTrainingGoesOn) {
  ASSERT_TRUE(cluster.submit(2, with_config()));
  ASSERT_TRUE(cluster.runs());
  const Json before = *cluster.server().get(kConfigMaps, cluster.ns(), "j-config-0");
  ASSERT_TRUE(cluster.server().remove(kConfigMaps, cluster.ns(), "j-config-0", {}));
  ASSERT_TRUE(cluster.until([&] { return is_there(cluster, kConfigMaps, "j-config-0"); }));
  EXPECT_EQ(cluster.server().get(kConfigMaps, cluster.ns(), "j-config-0")->at("data"), before["data"]);
  EXPECT_TRUE(cluster.runs());
  EXPECT_EQ(cluster.status().restarts, RestartsStatus());
}

}  // namespace
}  // namespace coxswain::testing
