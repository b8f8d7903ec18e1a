// The same manifest applied again and again, as Argo CD, Flux and people do, with kubectl.
#include <gmock/gmock.h>

#include "operator/api/parse.h"
#include "tests/client/objects.h"
#include "tests/integration_field/server_field.h"

namespace coxswain::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

Json a_manifest(const Json& spec = Json::object()) {
  Json manifest = a_training_job("j", 2);
  manifest["spec"].merge_patch(spec);
  return manifest;
}

std::string kubectl_apply(ServerField& cluster, const Json& manifest, std::vector<std::string> how = {}) {
  std::vector<std::string> arguments{"apply", "--filename=-"};
  arguments.insert(arguments.end(), how.begin(), how.end());
  const Finished applied = cluster.kubectl(arguments, manifest.dump());
  EXPECT_EQ(applied.exit_code, 0) << applied.err;
  return applied.out;
}

void changes_nothing(ServerField& cluster, const Json& manifest, const std::vector<std::string>& how) {
  kubectl_apply(cluster, manifest, how);
  ASSERT_TRUE(cluster.runs());
  cluster.let_pass(1min);
  const Json before = cluster.job();
  const std::vector<Json> pods = cluster.pods();
  cluster.forget_calls();
  for (int i = 0; i < 3; ++i) kubectl_apply(cluster, manifest, how);
  cluster.let_pass(1min);
  EXPECT_EQ(cluster.job(), before) << "spec, generation, status, managedFields and version";
  EXPECT_EQ(cluster.pods(), pods);
  EXPECT_EQ(cluster.writes(), 0);
}

SERVER_REPORT(TheSameManifestAppliedAgainByTheClientChangesNothing) {
  changes_nothing(cluster, a_manifest(), {});
  EXPECT_THAT(kubectl_apply(cluster, a_manifest()),
              HasSubstr("trainingjob.training.coxswain.dev/j unchanged"));
}

SERVER_REPORT(TheSameManifestAppliedAgainByTheServerChangesNothing) {
  changes_nothing(cluster, a_manifest(with_config()), {"--server-side", "--field-manager=argocd-controller"});
}

SERVER_REPORT(TheOperatorIsNobodysRivalForFieldsOfAJobThatTheServerApplies) {
  const std::vector<std::string> how{"--server-side", "--field-manager=flux"};
  kubectl_apply(cluster, a_manifest(), how);
  ASSERT_TRUE(cluster.runs());
  Json changed = a_manifest({{"runPolicy", {{"activeDeadlineSeconds", 4000}}}});
  kubectl_apply(cluster, changed, how);  // a conflict would be an exit code of 1
  EXPECT_EQ(cluster.job()["spec"]["runPolicy"]["activeDeadlineSeconds"], 4000);
  for (const Json& owner : cluster.job()["metadata"]["managedFields"]) {
    if (owner["manager"] == "flux") continue;
    EXPECT_EQ(owner.value("subresource", ""), "status") << owner.dump();
    EXPECT_FALSE(owner["fieldsV1"].contains("f:spec")) << owner.dump();
  }
  EXPECT_TRUE(cluster.runs());
}

SERVER_REPORT(TheCrdAppliesClientSideWithoutAnAnnotationThatIsTooLong) {
  for (int i = 0; i < 2; ++i) {
    const Finished applied = cluster.plane().kubectl({"apply", "--filename=crds/trainingjob.yaml"});
    EXPECT_EQ(applied.exit_code, 0) << applied.err;
  }
}

}  // namespace
}  // namespace coxswain::testing
