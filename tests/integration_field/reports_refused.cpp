// What a real API server refuses: its words, told in the job's status.
#include <gmock/gmock.h>

#include "operator/api/parse.h"
#include "tests/client/objects.h"
#include "tests/integration_field/server_field.h"

namespace coxswain::testing {
namespace {

using namespace resources;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

const Resource kLimitRanges{"", "v1", "limitranges", "LimitRange"};
const Resource kPolicies{"admissionregistration.k8s.io", "v1", "validatingadmissionpolicies",
                         "ValidatingAdmissionPolicy"};
const Resource kPolicyBindings{"admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings",
                               "ValidatingAdmissionPolicyBinding"};

Json trainer(const Json& patch = Json::object()) {
  Json container = {{"name", "trainer"}, {"image", "example.com/none:1"}, {"command", {"true"}}};
  container.merge_patch(patch);
  return {{"template", {{"spec", {{"containers", {container}}}}}}};
}

// Admission reads its own objects through caches.
bool refuses_pods(ServerField& cluster, const Json& pod) {
  return cluster.until([&] {
    WriteOptions dry_run;
    dry_run.dry_run = true;
    return !cluster.server().create(kPods, cluster.ns(), pod, dry_run).has_value();
  });
}

SERVER_REPORT(ATemplateThatTheServerRejectsWith422FailsTheJobWithItsMessageAndIsNotRetried) {
  ASSERT_TRUE(cluster.submit(2, trainer({{"imagePullPolicy", "Sometimes"}})));
  ASSERT_TRUE(cluster.until_phase("Failed"));
  EXPECT_EQ(cluster.reason(kConditionFailed), "InvalidTemplate");
  EXPECT_EQ(cluster.reason(kConditionStalled), "InvalidTemplate");
  EXPECT_THAT(cluster.said(kConditionFailed),
              HasSubstr("spec.containers[0].imagePullPolicy: Unsupported value"));
  cluster.let_pass(1min);
  cluster.forget_calls();
  cluster.let_pass(1min);
  EXPECT_EQ(cluster.writes(), 0);
  EXPECT_TRUE(cluster.pods().empty());
}

SERVER_REPORT(ATemplateThatTheServerCannotReadFailsTheJobWithItsMessageAndIsNotRetried) {
  ASSERT_TRUE(cluster.submit(2, trainer({{"tty", "perhaps"}})));
  ASSERT_TRUE(cluster.until_phase("Failed"));
  EXPECT_EQ(cluster.reason(kConditionFailed), "InvalidTemplate");
  EXPECT_THAT(cluster.said(kConditionFailed), HasSubstr("tty"));
}

SERVER_REPORT(PodSecurityStallsTheJobWithItsWordsAndAChangedTemplateIsTriedAtOnce) {
  ASSERT_TRUE(cluster.server().merge_patch(
      kNamespaces, "", cluster.ns(),
      {{"metadata", {{"labels", {{"pod-security.kubernetes.io/enforce", "restricted"}}}}}}, {}));
  ASSERT_TRUE(refuses_pods(cluster, a_pod("probe")));
  ASSERT_TRUE(cluster.submit(2));
  ASSERT_TRUE(cluster.until_phase("Stalled"));
  EXPECT_EQ(cluster.reason(kConditionStalled), "PodSecurityViolation");
  EXPECT_THAT(cluster.said(kConditionStalled), HasSubstr(R"(violates PodSecurity "restricted:latest")"));
  EXPECT_THAT(cluster.said(kConditionStalled), HasSubstr("runAsNonRoot != true"));
  EXPECT_TRUE(cluster.until([&] { return cluster.has_event("PodSecurityViolation"); }));
  ASSERT_TRUE(cluster.patch({{"suspend", true}}));
  ASSERT_TRUE(cluster.until_phase("Suspended"));
  const Json allowed = {{"allowPrivilegeEscalation", false},
                        {"runAsNonRoot", true},
                        {"capabilities", {{"drop", {"ALL"}}}},
                        {"seccompProfile", {{"type", "RuntimeDefault"}}}};
  Json change = trainer({{"securityContext", allowed}});
  change["suspend"] = false;
  ASSERT_TRUE(cluster.patch(change));
  EXPECT_TRUE(cluster.runs(1));
}

SERVER_REPORT(AJobWithAConfigRunsInANamespaceThatEnforcesRestricted) {
  ASSERT_TRUE(cluster.server().merge_patch(
      kNamespaces, "", cluster.ns(),
      {{"metadata", {{"labels", {{"pod-security.kubernetes.io/enforce", "restricted"}}}}}}, {}));
  ASSERT_TRUE(refuses_pods(cluster, a_pod("probe")));
  ASSERT_TRUE(cluster.submit(2, with_config()));
  EXPECT_TRUE(cluster.runs());
}

SERVER_REPORT(ALimitRangeStallsTheJobAndTheStartupDeadlineEndsItWithoutARetry) {
  ASSERT_TRUE(
      cluster.server().create(kLimitRanges, cluster.ns(),
                              {{"metadata", {{"name", "small"}}},
                               {"spec", {{"limits", {{{"type", "Container"}, {"max", {{"cpu", "1"}}}}}}}}},
                              {}));
  Json large = a_pod("probe");
  large["spec"]["containers"][0]["resources"] = {{"limits", {{"cpu", "2"}}}};
  ASSERT_TRUE(refuses_pods(cluster, large));
  ASSERT_TRUE(cluster.submit(
      2, {{"resources", {{"limits", {{"cpu", "2"}}}}}, {"runPolicy", {{"startupDeadlineSeconds", 15}}}}));
  ASSERT_TRUE(cluster.until_phase("Stalled"));
  EXPECT_EQ(cluster.reason(kConditionStalled), "LimitRangeViolation");
  EXPECT_THAT(cluster.said(kConditionStalled),
              HasSubstr("maximum cpu usage per Container is 1, but limit is 2"));
  ASSERT_TRUE(cluster.until_phase("Failed"));
  EXPECT_EQ(cluster.reason(kConditionFailed), "StartupDeadlineExceeded");
  EXPECT_THAT(cluster.said(kConditionFailed), HasSubstr("maximum cpu usage per Container"));
  EXPECT_EQ(cluster.status().restarts, RestartsStatus());
}

Json a_policy(const std::string& name) {
  return {{"metadata", {{"name", name}}},
          {"spec",
           {{"failurePolicy", "Fail"},
            {"matchConstraints",
             {{"resourceRules",
               {{{"apiGroups", {""}},
                 {"apiVersions", {"v1"}},
                 {"operations", {"CREATE"}},
                 {"resources", {"pods"}}}}}}},
            {"validations",
             {{{"expression", "has(object.metadata.labels) && 'team' in object.metadata.labels"},
               {"message", "every pod has a team"}}}}}}};
}

Json a_binding(const std::string& name, const std::string& ns) {
  return {{"metadata", {{"name", name}}},
          {"spec",
           {{"policyName", name},
            {"validationActions", {"Deny"}},
            {"matchResources",
             {{"namespaceSelector", {{"matchLabels", {{"kubernetes.io/metadata.name", ns}}}}}}}}}};
}

SERVER_REPORT(AnAdmissionPolicysRefusalStallsTheJobThough422AndAChangeHelps) {
  const std::string name = cluster.ns();  // not in a namespace, so named as one
  ASSERT_TRUE(cluster.server().create(kPolicies, "", a_policy(name), {}));
  ASSERT_TRUE(cluster.server().create(kPolicyBindings, "", a_binding(name, cluster.ns()), {}));
  EXPECT_TRUE(refuses_pods(cluster, a_pod("probe")));
  EXPECT_TRUE(cluster.submit(2));
  EXPECT_TRUE(cluster.until_phase("Stalled"));
  EXPECT_EQ(cluster.reason(kConditionStalled), "AdmissionDenied");
  EXPECT_THAT(cluster.said(kConditionStalled), HasSubstr("denied request: every pod has a team"));
  EXPECT_TRUE(cluster.patch({{"suspend", true}}));
  EXPECT_TRUE(cluster.until_phase("Suspended"));
  EXPECT_TRUE(
      cluster.patch({{"suspend", false}, {"template", {{"metadata", {{"labels", {{"team", "ml"}}}}}}}}));
  EXPECT_TRUE(cluster.runs(1));
  cluster.server().remove(kPolicyBindings, "", name, {});
  cluster.server().remove(kPolicies, "", name, {});
}

SERVER_REPORT(AServiceAccountThatIsNotThereYetIsWaitedFor) {
  ASSERT_TRUE(cluster.submit(2, {{"template", {{"spec", {{"serviceAccountName", "trainer"}}}}}}));
  ASSERT_TRUE(
      cluster.until([&] { return cluster.reason(kConditionReconciling) == "ServiceAccountNotFound"; }));
  EXPECT_THAT(cluster.said(kConditionReconciling), HasSubstr(R"(serviceaccount "trainer" not found)"));
  ASSERT_TRUE(
      cluster.server().create(kServiceAccounts, cluster.ns(), {{"metadata", {{"name", "trainer"}}}}, {}));
  EXPECT_TRUE(cluster.runs());
}

SERVER_REPORT(AQuotaThatWantsLimitsSaysWhichAreToBeSet) {
  const Resource quotas{"", "v1", "resourcequotas", "ResourceQuota"};
  ASSERT_TRUE(cluster.server().create(
      quotas, cluster.ns(), {{"metadata", {{"name", "cpu"}}}, {"spec", {{"hard", {{"limits.cpu", "8"}}}}}},
      {}));
  ASSERT_TRUE(cluster.until([&] {
    return cluster.server().get(quotas, cluster.ns(), "cpu")->contains("/status/hard"_json_pointer);
  }));
  ASSERT_TRUE(refuses_pods(cluster, a_pod("probe")));
  ASSERT_TRUE(cluster.submit(2));
  ASSERT_TRUE(cluster.until_phase("Stalled"));
  EXPECT_EQ(cluster.reason(kConditionStalled), "QuotaNeedsResources");
  EXPECT_THAT(cluster.said(kConditionStalled), HasSubstr("must specify limits.cpu"));
}

}  // namespace
}  // namespace coxswain::testing
