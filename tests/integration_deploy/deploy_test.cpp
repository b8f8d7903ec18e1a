// What deploy/ makes of a cluster.
#include <gmock/gmock.h>

#include <memory>

#include "contract/contract.h"
#include "operator/client/metadata.h"
#include "operator/manager/options.h"
#include "tests/integration/fake_nodes.h"
#include "tests/integration/fixture.h"
#include "tests/integration/operator_process.h"
#include "tests/integration_deploy/installation.h"

namespace coxswain::testing {
namespace {

using coxswain::resources::kPods;
using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kVersions[] =
    "jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.namespace} {.metadata.generation} "
    "{.metadata.uid}{\"\\n\"}{end}";
const Resource kDeployments{"apps", "v1", "deployments", "Deployment"};

// A control plane that also makes the pods of Deployments; one for the tests of this file.
ControlPlane& plane_with_deployments() {
  static std::unique_ptr<ControlPlane> plane;
  class StopsIt : public ::testing::Environment {
   public:
    void TearDown() override { plane.reset(); }
  };
  if (plane == nullptr) {
    ControlPlaneOptions options = options_of_environment();
    options.controllers.insert(options.controllers.end(), {"deployment-controller", "replicaset-controller"});
    options.install_crd = false;
    plane = std::make_unique<ControlPlane>(options);
    ::testing::AddGlobalTestEnvironment(new StopsIt);
  }
  return *plane;
}

class Deploy : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (skipped_without_control_plane()) return;
    manifests_ = render(plane(), GetParam());
    for (const char* ns : {kOperatorNamespace, "team-a", "team-b"}) {
      plane().kubectl({"create", "namespace", ns});
    }
  }
  ControlPlane& plane() { return plane_with_deployments(); }
  const Json& manifest(const std::string& kind, const std::string& name) const {
    return only(manifests_, kind, name);
  }
  const Json& template_spec() const {
    return manifest("Deployment", "coxswain-operator").at("/spec/template/spec"_json_pointer);
  }
  const Json& container() const { return template_spec()["containers"].at(0); }
  int port(const std::string& name) const {
    for (const Json& port : container()["ports"]) {
      if (port["name"] == name) return port["containerPort"];
    }
    return 0;
  }
  // Kind, namespace and name of all that was applied, and which version of it there is.
  std::string versions() {
    const Finished all = plane().kubectl({"get", "-k", "deploy/" + GetParam(), "-o", kVersions});
    EXPECT_EQ(all.exit_code, 0) << all.err;
    return all.out;
  }
  Finished apply(std::vector<std::string> more) {
    std::vector<std::string> arguments{"apply", "-k", "deploy/" + GetParam()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return plane().kubectl(arguments);
  }

  std::vector<Json> manifests_;
};

INSTANTIATE_TEST_SUITE_P(Overlays, Deploy, ::testing::Values("cluster-wide", "namespaces"),
                         [](const auto& info) {
                           return std::string(info.param == "namespaces" ? "Namespaces" : "ClusterWide");
                         });

TEST_P(Deploy, TheServerTakesItAndApplyingItAgainChangesNothing) {
  const Finished tried = apply({"--dry-run=server"});
  EXPECT_EQ(tried.exit_code, 0) << tried.err;
  const Finished done = apply({});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.err, Not(HasSubstr("would violate"))) << "of the namespace's Pod Security level";
  const std::string before = versions();
  EXPECT_THAT(before, HasSubstr("Deployment coxswain-operator"));
  const Finished again = apply({});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(versions(), before);
}

// The namespace enforces it, so a pod that is there has passed.
TEST_P(Deploy, ItsPodsAreAdmittedAtTheRestrictedLevelAndRun) {
  ASSERT_EQ(
      manifest("Namespace", kOperatorNamespace)["metadata"]["labels"]["pod-security.kubernetes.io/enforce"],
      "restricted");
  ASSERT_EQ(apply({}).exit_code, 0);
  FakeNodes nodes(plane().api(),
                  [this](const std::string& ns, const std::string& pod, const std::string& node) {
                    return plane().bind_pod(ns, pod, node);
                  },
                  {.namespace_name = kOperatorNamespace, .nodes = 1});
  Json status;
  EXPECT_TRUE(eventually([&] {
    status =
        plane().api().get(kDeployments, kOperatorNamespace, "coxswain-operator")->value("status", Json());
    return status.value("readyReplicas", 0) == 2;
  })) << status.dump(2);
  // What isn't: that level is not asleep.
  Json pod = {{"metadata", {{"name", "bare"}}}, {"spec", template_spec()}};
  pod["spec"]["securityContext"].erase("seccompProfile");
  const auto refused = plane().api().create(kPods, kOperatorNamespace, pod, {.dry_run = true});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("violates PodSecurity \"restricted"));
}

TEST_P(Deploy, ItsContainerCanWriteNothingAndGainNothing) {
  const Json& security = container()["securityContext"];
  EXPECT_EQ(security["readOnlyRootFilesystem"], true);
  EXPECT_EQ(security["allowPrivilegeEscalation"], false);
  EXPECT_EQ(security["capabilities"], Json::parse(R"({"drop": ["ALL"]})"));
  EXPECT_EQ(template_spec()["securityContext"]["runAsNonRoot"], true);
  EXPECT_EQ(template_spec()["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
  EXPECT_EQ(template_spec()["enableServiceLinks"], false);
  EXPECT_FALSE(template_spec().contains("volumes"));
}

TEST_P(Deploy, ItSaysWhatTheProgramSays) {
  const char* const argv[] = {"coxswain-operator"};
  const auto parsed = parse_operator_options(1, argv);
  const auto& defaults = std::get<OperatorOptions>(parsed);
  EXPECT_EQ(":" + std::to_string(port("metrics")), defaults.metrics_address);
  EXPECT_EQ(":" + std::to_string(port("health")), defaults.health_address);
  EXPECT_GT(std::chrono::seconds(template_spec()["terminationGracePeriodSeconds"].get<int>()),
            defaults.drain_timeout + 5s);
  const Json& election = manifest("Role", "coxswain-operator-leader-election");
  EXPECT_EQ(election["rules"][1]["resourceNames"], Json::array({defaults.leader_election.lease_name}));
  // The image is that of the program's own release.
  const Finished version = run_program({{operator_program(), "--version"}, {}});
  const std::string image = container()["image"];
  EXPECT_EQ("coxswain-operator " + image.substr(image.rfind(':') + 1) + "\n", version.out);
}

TEST_P(Deploy, EachOfItsVariablesIsOneOfTheProgram) {
  const std::string name = container().at("/envFrom/0/configMapRef/name"_json_pointer);
  const Finished help = run_program({{operator_program(), "--help"}, {}});
  const Json& data = manifest("ConfigMap", name)["data"];
  ASSERT_FALSE(data.empty());
  for (const auto& [variable, value] : data.items()) {
    EXPECT_THAT(help.out, HasSubstr("Env:" + variable + ")"));
  }
}

TEST(DeployForNamespaces, EachNamespaceOfTheFlagIsBoundAndNoOther) {
  if (skipped_without_control_plane()) return;
  const auto manifests = render(plane_with_deployments(), "namespaces");
  std::string named;
  std::string bound;
  for (const Json& manifest : manifests) {
    const Json& name = manifest["metadata"]["name"];
    EXPECT_NE(manifest["kind"], "ClusterRoleBinding");
    if (manifest["kind"] == "ConfigMap") named = manifest["data"]["COXSWAIN_OPERATOR_NAMESPACES"];
    if (manifest["kind"] == "RoleBinding" && name == "coxswain-operator") {
      bound += (bound.empty() ? "" : ",") + manifest["metadata"]["namespace"].get<std::string>();
    }
  }
  EXPECT_EQ(bound, named);
}

}  // namespace
}  // namespace coxswain::testing
