// Reports of jobs that are refused, or don't start.
#include <gmock/gmock.h>

#include "contract/contract.h"
#include "operator/api/parse.h"
#include "tests/client/objects.h"
#include "tests/operator_field/field_cluster.h"

namespace coxswain::testing {
namespace {

using namespace resources;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

ApiResult<Json> create_named(FieldCluster& cluster, const std::string& name, int nodes,
                             const Json& spec_patch = Json::object()) {
  Json job = a_training_job(name, nodes);
  job["spec"].merge_patch(spec_patch);
  return cluster.server().create(kTrainingJobs, cluster.ns(), job, {});
}

FIELD_REPORT(AJobNameTooLongOrWithADotIsRefusedAtAdmissionWithTheLimitNamed) {
  const auto long_name = create_named(cluster, std::string(61, 'a'), 11);
  ASSERT_FALSE(long_name);
  EXPECT_EQ(long_name.error().code, 422);
  EXPECT_THAT(long_name.error().message, HasSubstr("63"));
  const auto dot = create_named(cluster, "a.b", 1);
  ASSERT_FALSE(dot);
  EXPECT_THAT(dot.error().message, HasSubstr("metadata.name"));
}

FIELD_REPORT(NodesOfZeroOrBelowAndNoProcessesAreRefusedAtAdmission) {
  const auto refused = [&](int nodes, const Json& spec_patch) {
    const auto created = create_named(cluster, "j", nodes, spec_patch);
    EXPECT_TRUE(!created && created.error().code == 422) << nodes;
    return created ? "" : created.error().message;
  };
  EXPECT_THAT(refused(0, Json::object()), HasSubstr("spec.nodes"));
  EXPECT_THAT(refused(-1, Json::object()), HasSubstr("spec.nodes"));
  EXPECT_THAT(refused(1, {{"processesPerNode", 0}}), HasSubstr("spec.processesPerNode"));
}

FIELD_REPORT(AServiceOfThatNameThatIsNotOursStallsTheJobAndIsNeverTouched) {
  ASSERT_TRUE(cluster.server().create(kServices, cluster.ns(), a_service("j"), {}));
  const Json stranger = *cluster.server().get(kServices, cluster.ns(), "j");
  ASSERT_TRUE(cluster.submit(2));
  ASSERT_TRUE(cluster.until([&] { return cluster.reason(kConditionStalled) == "NameConflict"; }));
  EXPECT_THAT(cluster.said(kConditionStalled), HasSubstr("Service named j"));
  cluster.let_pass(10min);
  EXPECT_TRUE(cluster.pods().empty());
  EXPECT_EQ(*cluster.server().get(kServices, cluster.ns(), "j"), stranger);
  ASSERT_TRUE(cluster.server().remove(kServices, cluster.ns(), "j", {}));
  EXPECT_TRUE(cluster.runs());
}

FIELD_REPORT(APodOfThatNameThatIsNotOursStallsTheJobAndIsNeverTouched) {
  ASSERT_TRUE(cluster.server().create(kPods, cluster.ns(), a_pod("j-1"), {}));
  const std::string uid = cluster.pod("j-1")["metadata"]["uid"];
  ASSERT_TRUE(cluster.submit(2));
  ASSERT_TRUE(cluster.until([&] { return cluster.reason(kConditionStalled) == "NameConflict"; }));
  EXPECT_THAT(cluster.said(kConditionStalled), HasSubstr("Pod named j-1"));
  cluster.let_pass(10min);
  const Json stranger = cluster.pod("j-1");
  EXPECT_EQ(stranger["metadata"]["uid"], uid);
  EXPECT_FALSE(stranger["metadata"].contains("ownerReferences")) << "not adopted";
  EXPECT_FALSE(stranger["metadata"].contains("deletionTimestamp"));
}

FIELD_REPORT(AServiceCalledCoxswainInTheNamespaceIsHarmless) {
  ASSERT_TRUE(cluster.server().create(kServices, cluster.ns(), a_service("coxswain"), {}));
  ASSERT_TRUE(cluster.submit(2));
  ASSERT_TRUE(cluster.runs());
  for (const Json& pod : cluster.pods()) EXPECT_EQ(pod["spec"]["enableServiceLinks"], false);
}

FIELD_REPORT(AJobSuspendedAtCreationHasNoPods) {
  ASSERT_TRUE(cluster.submit(2, {{"suspend", true}}));
  ASSERT_TRUE(cluster.until_phase("Suspended"));
  cluster.let_pass(10min);
  EXPECT_TRUE(cluster.pods().empty());
  EXPECT_EQ(cluster.creates("pods"), 0);
  ASSERT_TRUE(cluster.patch({{"suspend", false}}));
  EXPECT_TRUE(cluster.runs());
}

FIELD_REPORT(AMasterAddrARankOrAVolumeAtOurPathsStaysOursAndAWarningSaysSo) {
  ASSERT_TRUE(cluster.submit(
      2,
      with_config(
          {{"env", {{{"name", "MASTER_ADDR"}, {"value", "elsewhere"}}, {{"name", "RANK"}, {"value", "7"}}}},
           {"volumes", {{{"name", "mine"}, {"emptyDir", Json::object()}}}},
           {"volumeMounts", {{{"name", "mine"}, {"mountPath", "/output"}}}}})));
  ASSERT_TRUE(cluster.runs());
  for (const char* what : {"MASTER_ADDR", "RANK", "/output"}) {
    EXPECT_TRUE(cluster.until([&] { return cluster.has_event("TemplateOverridden", what); })) << what;
  }
  const std::string pod = cluster.pod("j-1")["spec"].dump();
  EXPECT_EQ(pod.find("elsewhere"), std::string::npos);
  EXPECT_THAT(pod, HasSubstr("j-0.j." + cluster.ns() + ".svc"));
}

// --- Pods that don't start

struct Trouble {
  const char* kubelet;
  const char* message;
  const char* reason;
};

void is_named_and_ended_by_the_startup_deadline(FieldCluster& cluster, const Trouble& trouble) {
  cluster.hold_up("j-1", trouble.kubelet, trouble.message);
  ASSERT_TRUE(cluster.submit(2, {{"runPolicy", {{"startupDeadlineSeconds", 20}, {"backoffLimit", 0}}}}));
  ASSERT_TRUE(cluster.until([&] { return cluster.reason(kConditionReconciling) == trouble.reason; }));
  EXPECT_THAT(cluster.said(kConditionReconciling), HasSubstr(trouble.message));
  EXPECT_THAT(cluster.said(kConditionReconciling), HasSubstr(trouble.kubelet));
  EXPECT_EQ(cluster.phase(), "Starting");
  EXPECT_TRUE(cluster.until([&] { return cluster.has_event(trouble.reason, "j-1"); }));
  ASSERT_TRUE(cluster.until_phase("Failed"));
  EXPECT_THAT(cluster.said(kConditionFailed), HasSubstr("startupDeadlineSeconds (20 s)"));
  EXPECT_THAT(cluster.said(kConditionFailed), HasSubstr(trouble.message));
  EXPECT_TRUE(cluster.until([&] { return cluster.pods().empty(); })) << "what was created is released";
}

FIELD_REPORT(ErrImagePullIsNamedAtOnceAndEndedByTheStartupDeadline) {
  is_named_and_ended_by_the_startup_deadline(cluster,
                                             {"ErrImagePull", "manifest unknown", "ImagePullFailed"});
}

FIELD_REPORT(ImagePullBackOffIsNamedAtOnceAndEndedByTheStartupDeadline) {
  is_named_and_ended_by_the_startup_deadline(
      cluster, {"ImagePullBackOff", "Back-off pulling image", "ImagePullFailed"});
}

FIELD_REPORT(CreateContainerConfigErrorIsNamedAtOnceAndEndedByTheStartupDeadline) {
  is_named_and_ended_by_the_startup_deadline(
      cluster, {"CreateContainerConfigError", "secret s not found", "ContainerConfigError"});
}

FIELD_REPORT(CreateContainerErrorIsNamedAtOnceAndEndedByTheStartupDeadline) {
  is_named_and_ended_by_the_startup_deadline(
      cluster, {"CreateContainerError", "no command specified", "ContainerStartError"});
}

FIELD_REPORT(TroubleThatPassesIsForgotten) {
  cluster.hold_up("j-1", "ImagePullBackOff", "Back-off pulling image");
  ASSERT_TRUE(cluster.submit(2));
  ASSERT_TRUE(cluster.until([&] { return cluster.reason(kConditionReconciling) == "ImagePullFailed"; }));
  cluster.hold_up("j-1", "", "");
  ASSERT_TRUE(cluster.runs());
  EXPECT_FALSE(has_condition(cluster.status(), kConditionReconciling));
  EXPECT_EQ(cluster.said(kConditionReady).find("pulling"), std::string::npos);
}

FIELD_REPORT(UnschedulableIsNamedWithTheSchedulersSentenceAndEndedByTheStartupDeadline) {
  cluster.make_unschedulable("j-1");
  ASSERT_TRUE(cluster.submit(2, {{"runPolicy", {{"startupDeadlineSeconds", 10}}}}));
  ASSERT_TRUE(cluster.until([&] { return cluster.reason(kConditionReconciling) == "Unschedulable"; }));
  EXPECT_THAT(cluster.said(kConditionReconciling), HasSubstr("3 Insufficient nvidia.com/gpu"));
  ASSERT_TRUE(cluster.until([&] { return cluster.status().restarts.counted == 1; }));
  cluster.make_unschedulable("j-1", false);
  EXPECT_EQ(cluster.status().last_failure->cause, "StartupDeadlineExceeded");
  EXPECT_EQ(cluster.status().last_failure->pod, "j-1");
  EXPECT_TRUE(cluster.runs(1));
}

FIELD_REPORT(AQuotaForAPartOfTheGangIsSaidAndThePartIsReleasedAfterABound) {
  cluster.set_quota(2);
  ASSERT_TRUE(cluster.submit_releasing_early(4));
  ASSERT_TRUE(cluster.until([&] { return cluster.reason(kConditionReconciling) == "QuotaExceeded"; }));
  const TimePoint start = cluster.now();
  ASSERT_TRUE(cluster.until([&] {
    return cluster.said(kConditionReconciling).starts_with("Only 2 of 4 pods could be created");
  })) << cluster.said(kConditionReconciling);
  EXPECT_THAT(cluster.said(kConditionReconciling), HasSubstr("exceeded quota"));
  EXPECT_EQ(cluster.pods().size(), 2U);
  ASSERT_TRUE(cluster.until([&] { return cluster.pods().empty(); }));
  EXPECT_GE(cluster.now() - start, 55s);
  EXPECT_TRUE(cluster.until([&] { return cluster.has_event("GangReleased"); }));
  EXPECT_EQ(cluster.status().restarts, RestartsStatus()) << "counted nowhere";
  EXPECT_EQ(cluster.status().attempt, 1);
}

FIELD_REPORT(AQuotaThatIsRaisedLetsTheRestOfTheGangBeCreated) {
  cluster.set_quota(2);
  ASSERT_TRUE(cluster.submit(4));
  ASSERT_TRUE(cluster.until([&] { return cluster.pods().size() == 2; }));
  ASSERT_TRUE(cluster.until([&] { return cluster.reason(kConditionReconciling) == "QuotaExceeded"; }));
  cluster.set_quota(4);
  ASSERT_TRUE(cluster.until_phase("Running"));
  EXPECT_LE(cluster.status().attempt, 1);
  EXPECT_EQ(cluster.status().restarts, RestartsStatus());
}

}  // namespace
}  // namespace coxswain::testing
