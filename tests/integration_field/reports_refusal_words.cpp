// The words of this release's admission plugins, as operator/reconcile/refusal.cpp knows them: each is
// provoked.
#include <gmock/gmock.h>

#include "operator/client/metadata.h"
#include "operator/client/rest/api_request.h"
#include "operator/client/rest/base64.h"
#include "operator/reconcile/refusal.h"
#include "tests/client/objects.h"
#include "tests/integration_field/server_field.h"
#include "tests/rest_client/certificates.h"
#include "tests/rest_client/test_server.h"

namespace coxswain::testing {
namespace {

using namespace resources;
using ::testing::HasSubstr;

const Resource kLimitRanges{"", "v1", "limitranges", "LimitRange"};
const Resource kResourceQuotas{"", "v1", "resourcequotas", "ResourceQuota"};
const Resource kRuntimeClasses{"node.k8s.io", "v1", "runtimeclasses", "RuntimeClass"};
const Resource kRoles{"rbac.authorization.k8s.io", "v1", "roles", "Role"};
const Resource kRoleBindings{"rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding"};
const Resource kWebhooks{"admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations",
                         "ValidatingWebhookConfiguration"};

struct Understood {
  std::string reason;
  Outlook outlook = Outlook::kPasses;
  int code = 0;
  std::string message;
};

Understood understood(const ApiError& error) {
  const Refusal refusal = understand({"Pod", "p", error.message, error.permanent(), error.code});
  return {refusal.reason, refusal.outlook, error.code, error.message};
}

// Until it is refused: admission reads its own objects through caches. What was accepted meanwhile is gone.
Understood refused(ServerField& cluster, const Json& pod) {
  std::optional<ApiError> error;
  cluster.until([&] {
    WriteOptions dry_run;
    dry_run.dry_run = true;
    const auto created = cluster.server().create(kPods, cluster.ns(), pod, dry_run);
    if (!created) error = created.error();
    return error.has_value();
  });
  return error ? understood(*error) : Understood{"accepted", Outlook::kPasses, 201, ""};
}

Json pod_with(const Json& spec_patch) {
  Json pod = a_pod("p");
  pod["spec"].merge_patch(spec_patch);
  return pod;
}

Json pod_limited_to(const Json& resources) {
  Json pod = a_pod("p");
  pod["spec"]["containers"][0]["resources"] = resources;
  return pod;
}

#define EXPECT_REFUSED(what, wanted_reason, wanted_outlook)                     \
  do {                                                                          \
    const Understood seen = (what);                                             \
    EXPECT_EQ(seen.reason, wanted_reason) << seen.code << " " << seen.message;  \
    EXPECT_EQ(static_cast<int>(seen.outlook), static_cast<int>(wanted_outlook)) \
        << seen.code << " " << seen.message;                                    \
  } while (false)

SERVER_REPORT(TheWordsOfPodsThatNameWhatIsNotThere) {
  EXPECT_REFUSED(refused(cluster, pod_with({{"priorityClassName", "no-such"}})), "ClassNotFound",
                 Outlook::kNeedsChange);
  EXPECT_REFUSED(refused(cluster, pod_with({{"runtimeClassName", "no-such"}})), "ClassNotFound",
                 Outlook::kNeedsChange);
  EXPECT_REFUSED(refused(cluster, pod_with({{"serviceAccountName", "no-such"}})), "ServiceAccountNotFound",
                 Outlook::kPasses);
  EXPECT_REFUSED(refused(cluster, pod_with({{"priority", 7}})), "AdmissionDenied", Outlook::kNeedsChange);
}

SERVER_REPORT(TheWordsOfARuntimeClassThatDoesNotFit) {
  const std::string name = cluster.ns();
  EXPECT_TRUE(cluster.server().create(kRuntimeClasses, "",
                                      {{"metadata", {{"name", name}}},
                                       {"handler", "h"},
                                       {"overhead", {{"podFixed", {{"cpu", "1"}}}}},
                                       {"scheduling", {{"nodeSelector", {{"zone", "a"}}}}}},
                                      {}));
  EXPECT_REFUSED(refused(cluster, pod_with({{"runtimeClassName", name}, {"overhead", {{"cpu", "2"}}}})),
                 "AdmissionDenied", Outlook::kNeedsChange);
  EXPECT_REFUSED(refused(cluster, pod_with({{"runtimeClassName", name}, {"nodeSelector", {{"zone", "b"}}}})),
                 "AdmissionDenied", Outlook::kNeedsChange);
  cluster.server().remove(kRuntimeClasses, "", name, {});
}

SERVER_REPORT(TheWordsOfLimitRanges) {
  const Json limit = {{"type", "Container"},
                      {"min", {{"memory", "1Mi"}}},
                      {"max", {{"cpu", "4"}}},
                      {"maxLimitRequestRatio", {{"cpu", "2"}}},
                      {"default", {{"cpu", "1"}, {"memory", "8Mi"}}},
                      {"defaultRequest", {{"cpu", "1"}, {"memory", "8Mi"}}}};
  ASSERT_TRUE(cluster.server().create(
      kLimitRanges, cluster.ns(),
      {{"metadata", {{"name", "small"}}}, {"spec", {{"limits", Json::array({limit})}}}}, {}));
  for (const Json& resources : {Json{{"limits", {{"cpu", "8"}}}},
                                Json{{"limits", {{"memory", "1Ki"}}}, {"requests", {{"memory", "1Ki"}}}},
                                Json{{"limits", {{"cpu", "4"}}}, {"requests", {{"cpu", "1"}}}}}) {
    EXPECT_REFUSED(refused(cluster, pod_limited_to(resources)), "LimitRangeViolation", Outlook::kNeedsChange);
  }
}

SERVER_REPORT(TheWordsOfQuotas) {
  ASSERT_TRUE(cluster.server().create(
      kResourceQuotas, cluster.ns(),
      {{"metadata", {{"name", "gpus"}}},
       {"spec", {{"hard", {{"requests.nvidia.com/gpu", "1"}, {"requests.memory", "1Gi"}}}}}},
      {}));
  const Json one_gpu = {{"limits", {{"nvidia.com/gpu", "1"}, {"memory", "1Mi"}}}};
  Json two_gpus = one_gpu;
  two_gpus["limits"]["nvidia.com/gpu"] = "2";
  EXPECT_REFUSED(refused(cluster, pod_limited_to({{"limits", {{"nvidia.com/gpu", "1"}}}})),
                 "QuotaNeedsResources", Outlook::kNeedsChange);
  // Of a new quota the controller has to say first how much is used.
  EXPECT_TRUE(cluster.until([&] {
    const auto quota = cluster.server().get(kResourceQuotas, cluster.ns(), "gpus");
    return quota && quota->contains("/status/hard"_json_pointer);
  }));
  EXPECT_REFUSED(refused(cluster, pod_limited_to(two_gpus)), "QuotaExceeded", Outlook::kPasses);
}

SERVER_REPORT(TheWordsOfRights) {
  cluster.the_operator().kill();
  const std::string token = cluster.plane().service_account_token(cluster.ns(), "default");
  const auto access = find_cluster_access(
      {.kubeconfig = cluster.plane().kubeconfig_for_token(token), .context = ""}, process_environment());
  ASSERT_TRUE(access);
  auto client = RestApiClient::connect(*access, ControlPlane::unlimited(), process_environment());
  ASSERT_TRUE(client);
  const auto create = [&](const Json& pod) {
    const auto created = (*client)->create(kPods, cluster.ns(), pod, {});
    return created ? Understood{"accepted", Outlook::kPasses, 201, ""} : understood(created.error());
  };
  EXPECT_REFUSED(create(a_pod("p")), "OperatorLacksRights", Outlook::kNeedsChange);

  const Json pods = {{"apiGroups", {""}}, {"resources", {"pods"}}, {"verbs", {"create", "delete"}}};
  ASSERT_TRUE(cluster.server().create(
      kRoles, cluster.ns(), {{"metadata", {{"name", "pods"}}}, {"rules", Json::array({pods})}}, {}));
  const Json account = {{"kind", "ServiceAccount"}, {"name", "default"}, {"namespace", cluster.ns()}};
  ASSERT_TRUE(
      cluster.server().create(kRoleBindings, cluster.ns(),
                              {{"metadata", {{"name", "pods"}}},
                               {"roleRef", {{"apiGroup", kRoles.group}, {"kind", "Role"}, {"name", "pods"}}},
                               {"subjects", Json::array({account})}},
                              {}));
  ASSERT_TRUE(cluster.until([&] { return create(a_pod("free")).reason == "accepted"; }));
  const auto job = cluster.submit(1);
  ASSERT_TRUE(job);
  Json owned = owned_by(a_pod("p"), *job);
  owned["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = true;
  EXPECT_REFUSED(create(owned), "OperatorLacksRights", Outlook::kNeedsChange);
}

SERVER_REPORT(TheWordsOfANamespaceThatIsBeingDeleted) {
  cluster.the_operator().kill();
  Json stays = a_pod("stays");
  stays["metadata"]["finalizers"] = {"example.com/stays"};
  ASSERT_TRUE(cluster.server().create(kPods, cluster.ns(), stays, {}));
  ASSERT_TRUE(cluster.server().remove(kNamespaces, "", cluster.ns(), {}));
  EXPECT_REFUSED(refused(cluster, a_pod("p")), "NamespaceTerminating", Outlook::kPasses);
  EXPECT_TRUE(cluster.server().merge_patch(kPods, cluster.ns(), "stays",
                                           {{"metadata", {{"finalizers", nullptr}}}}, {}));
}

// What the webhook answers with; nothing: it doesn't.
Json webhook(const std::string& name, const std::string& ns, const std::string& ca_pem, int port) {
  return {
      {"metadata", {{"name", name}}},
      {"webhooks",
       {{{"name", "teams.example.com"},
         {"admissionReviewVersions", {"v1"}},
         {"sideEffects", "None"},
         {"failurePolicy", "Fail"},
         {"clientConfig",
          {{"url", "https://127.0.0.1:" + std::to_string(port) + "/"}, {"caBundle", encode_base64(ca_pem)}}},
         {"namespaceSelector", {{"matchLabels", {{"kubernetes.io/metadata.name", ns}}}}},
         {"rules",
          {{{"apiGroups", {""}},
            {"apiVersions", {"v1"}},
            {"operations", {"CREATE"}},
            {"resources", {"pods"}}}}}}}}};
}

SERVER_REPORT(TheWordsOfAWebhookThatDeniesOrIsNotThere) {
  const TestAuthority authority;
  std::unique_ptr<HttpsServer> judge = std::make_unique<HttpsServer>(
      authority.issue({.subject_alt_name = "IP:127.0.0.1"}),
      [](const httplib::Request& request, httplib::Response& response) {
        const Json uid = Json::parse(request.body)["request"]["uid"];
        response.set_content(
            Json{{"apiVersion", "admission.k8s.io/v1"},
                 {"kind", "AdmissionReview"},
                 {"response", {{"uid", uid}, {"allowed", false}, {"status", {{"message", "no team"}}}}}}
                .dump(),
            "application/json");
      },
      HttpsServerOptions());
  const std::string name = cluster.ns();
  ASSERT_TRUE(
      cluster.server().create(kWebhooks, "", webhook(name, name, authority.ca_pem(), judge->port()), {}));
  const Understood denied = refused(cluster, a_pod("p"));
  EXPECT_REFUSED(denied, "AdmissionDenied", Outlook::kNeedsChange);
  EXPECT_EQ(denied.code, 400) << "though it is not for ever";
  judge.reset();
  EXPECT_REFUSED(refused(cluster, a_pod("p")), "ServerError", Outlook::kPasses);
  cluster.server().remove(kWebhooks, "", name, {});
}

SERVER_REPORT(TheWordsOfPodsThatAreInvalidOrCannotBeRead) {
  EXPECT_REFUSED(refused(cluster, pod_with({{"restartPolicy", "Perhaps"}})), "InvalidTemplate",
                 Outlook::kNever);
  EXPECT_REFUSED(refused(cluster, pod_with({{"hostNetwork", "perhaps"}})), "InvalidTemplate",
                 Outlook::kNever);
}

}  // namespace
}  // namespace coxswain::testing
