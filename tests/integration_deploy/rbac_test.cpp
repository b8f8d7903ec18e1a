// The operator with exactly the rights that deploy/ gives it: they suffice for the whole life of a job, and
// none of them is there in vain.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <set>

#include "contract/contract.h"
#include "operator/client/metadata.h"
#include "tests/client/objects.h"
#include "tests/integration/fake_nodes.h"
#include "tests/integration/fixture.h"
#include "tests/integration/operator_process.h"
#include "tests/integration_deploy/installation.h"

namespace coxswain::testing {
namespace {

using namespace coxswain::resources;
using namespace std::chrono_literals;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// "watch pods", "update training.coxswain.dev/trainingjobs/status"
std::string right(const std::string& verb, const std::string& group, const std::string& resource) {
  return verb + " " + (group.empty() ? "" : group + "/") + resource;
}

std::set<std::string> granted(const std::vector<Json>& manifests) {
  std::set<std::string> rights;
  for (const Json& manifest : manifests) {
    if (manifest["kind"] != "ClusterRole" && manifest["kind"] != "Role") continue;
    for (const Json& rule : manifest["rules"]) {
      for (const std::string group : rule["apiGroups"]) {
        for (const std::string resource : rule["resources"]) {
          for (const std::string verb : rule["verbs"]) rights.insert(right(verb, group, resource));
        }
      }
    }
  }
  return rights;
}

struct Request {
  std::string right;
  std::string ns;  // "": of the whole cluster
  int code = 0;
  bool allowed = false;
  std::string line;
};

// Those of the operator, from the audit log.
std::vector<Request> requests_since(const std::filesystem::path& log, std::streamoff begin) {
  std::ifstream stream(log);
  stream.seekg(begin);
  std::vector<Request> requests;
  for (std::string line; std::getline(stream, line);) {
    const Json entry = Json::parse(line, nullptr, false);
    if (!entry.is_object() || entry.at("/user/username"_json_pointer) != kOperatorUser) continue;
    const Json object = entry.value("objectRef", Json::object());
    const std::string subresource = object.value("subresource", "");
    requests.push_back(
        {right(entry["verb"], object.value("apiGroup", ""),
               object.value("resource", "") + (subresource.empty() ? "" : "/" + subresource)),
         object.value("namespace", ""), entry.value("/responseStatus/code"_json_pointer, 0),
         entry.value("/annotations/authorization.k8s.io~1decision"_json_pointer, "") == "allow", line});
  }
  return requests;
}

ControlPlane& audited_plane() {
  static std::unique_ptr<ControlPlane> plane;
  class StopsIt : public ::testing::Environment {
   public:
    void TearDown() override { plane.reset(); }
  };
  if (plane == nullptr) {
    ControlPlaneOptions options = options_of_environment();
    options.audit_log = true;
    // Asks for the right to trainingjobs/finalizers before a child may hold up its owner's deletion.
    // And has no streaming lists, so that the right to list is needed, as on servers before 1.35.
    options.api_server_flags = {"--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
                                "--feature-gates=WatchList=false"};
    plane = std::make_unique<ControlPlane>(options);
    ::testing::AddGlobalTestEnvironment(new StopsIt);
  }
  return *plane;
}

// One variant of deploy/, installed, with an operator that runs as its account.
class Rights : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (skipped_without_control_plane()) return;
    if (!audited_plane().owned())
      GTEST_SKIP() << "no control plane here: that of KUBECONFIG has no audit log of ours";
    for (const char* ns : {"team-a", "team-b", "team-c"}) plane().make_namespace(ns);
    install(plane(), GetParam());
    manifests_ = render(plane(), GetParam());
    audit_begin_ = std::filesystem::file_size(plane().audit_log());
    const std::string token = plane().service_account_token(kOperatorNamespace, kOperatorAccount);
    kubeconfig_ = plane().kubeconfig_for_token(token);
    program_ = std::make_unique<OperatorProcess>(OperatorProcessOptions{kubeconfig_, flags(), variables()});
    program_->start_and_wait();
    nodes_ = std::make_unique<FakeNodes>(plane(), FakeNodesOptions{.namespace_name = kNs});
  }
  void TearDown() override {
    nodes_.reset();
    program_.reset();
    if (!audited_plane().owned()) return;
    plane().kubectl({"delete", "trainingjobs,pods,services,configmaps", "--all", "-n", kNs, "--force"});
    plane().kubectl({"delete", "leases", "--all", "-n", kOperatorNamespace});
    for (const Json& manifest : manifests_) {
      const std::string kind = manifest["kind"];
      if (!kind.ends_with("RoleBinding")) continue;
      std::vector<std::string> remove{"delete", kind, manifest["metadata"]["name"]};
      if (kind == "RoleBinding") remove.insert(remove.end(), {"-n", manifest["metadata"]["namespace"]});
      plane().kubectl(remove);
    }
  }

  ControlPlane& plane() { return audited_plane(); }
  ApiClient& api() { return plane().api(); }
  bool in_namespaces() const { return GetParam() == "namespaces"; }

  // As the Deployment's pods get them.
  std::map<std::string, std::string> variables() const {
    std::map<std::string, std::string> result;
    for (const Json& manifest : manifests_) {
      if (manifest["kind"] == "ConfigMap") result = manifest["data"];
    }
    return result;
  }
  std::vector<std::string> flags() const {
    return {"--leader-elect=true", "--leader-election-namespace=" + std::string(kOperatorNamespace)};
  }

  void submit(const std::string& name, int nodes, const Json& patch) {
    Json job = a_training_job(name, nodes);
    job["spec"].erase("template");
    job["spec"]["config"] = {
        {"task", "llm"}, {"base_model", "/m"}, {"project_name", "p"}, {"data", {{"path", "/d"}}}};
    job.merge_patch(patch);
    const auto created = api().create(kTrainingJobs, kNs, job, {});
    ASSERT_TRUE(created) << created.error().message;
  }
  std::string phase(const std::string& name) {
    const auto job = api().get(kTrainingJobs, kNs, name);
    if (!job) return job.error().not_found() ? "Gone" : "?";
    return job->value("/status/phase"_json_pointer, "");
  }
  bool becomes(const std::string& name, const std::string& wanted) {
    return eventually([&] { return phase(name) == wanted; });
  }
  void suspend(const std::string& name, bool suspended) {
    ASSERT_TRUE(api().merge_patch(kTrainingJobs, kNs, name, {{"spec", {{"suspend", suspended}}}}, {}));
  }
  void end_all(const std::string& name, int nodes, int exit_code) {
    for (int i = 0; i < nodes; ++i) {
      nodes_->kubelet(kNs).end(name + "-" + std::to_string(i), exit_code);
    }
  }
  bool is_there(const Resource& resource, const std::string& ns, const std::string& name) {
    return api().get(resource, ns, name).has_value();
  }

  // --- What a job lives through
  void live();
  void meet_strangers();
  void be_written_to_by_others();

  std::vector<Request> requests() const { return requests_since(audited_plane().audit_log(), audit_begin_); }
  std::string trouble() { return program_->log(); }
  bool may(const std::vector<std::string>& what) {
    std::vector<std::string> arguments{"--kubeconfig", kubeconfig_, "auth", "can-i"};
    arguments.insert(arguments.end(), what.begin(), what.end());
    return plane().kubectl(arguments).exit_code == 0;
  }

  static constexpr char kNs[] = "team-a";
  std::vector<Json> manifests_;
  std::streamoff audit_begin_ = 0;
  std::string kubeconfig_;
  std::unique_ptr<OperatorProcess> program_;
  std::unique_ptr<FakeNodes> nodes_;
};

constexpr char Rights::kNs[];

INSTANTIATE_TEST_SUITE_P(Overlays, Rights, ::testing::Values("cluster-wide", "namespaces"),
                         [](const auto& info) {
                           return std::string(info.param == "namespaces" ? "Namespaces" : "ClusterWide");
                         });

// Run, fail, restart, suspend, resume, complete, be deleted.
void Rights::live() {
  submit("life", 2, {{"spec", {{"runPolicy", {{"ttlSecondsAfterFinished", 1}}}}}});
  ASSERT_TRUE(becomes("life", "Running")) << trouble();
  nodes_->kubelet(kNs).end("life-1", 1, "out of luck");
  ASSERT_TRUE(becomes("life", "Restarting")) << trouble();
  ASSERT_TRUE(becomes("life", "Running")) << trouble();
  // The same words again: the first time an event, then its count; and the next operator must read that
  // first.
  for (int round = 0; round < 3; ++round) {
    suspend("life", true);
    ASSERT_TRUE(becomes("life", "Suspended")) << trouble();
    suspend("life", false);
    ASSERT_TRUE(becomes("life", "Running")) << trouble();
    if (round != 1) continue;
    EXPECT_EQ(program_->terminate(), 0);
    program_->start_and_wait();
  }
  end_all("life", 2, 0);
  ASSERT_TRUE(becomes("life", "Gone")) << trouble();
}

// A job of a GitOps tool, whose children alone go when its time to live is over; and names that are taken.
void Rights::meet_strangers() {
  const Json tracked = {
      {"argocd.argoproj.io/tracking-id", "app:training.coxswain.dev/TrainingJob:team-a/kept"}};
  submit("kept", 1,
         {{"metadata", {{"annotations", tracked}}},
          {"spec", {{"runPolicy", {{"ttlSecondsAfterFinished", 1}}}}}});
  ASSERT_TRUE(becomes("kept", "Running")) << trouble();
  end_all("kept", 1, 0);
  ASSERT_TRUE(becomes("kept", "Complete")) << trouble();
  ASSERT_TRUE(eventually([&] { return !is_there(kServices, kNs, "kept"); })) << trouble();

  ASSERT_TRUE(api().create(kPods, kNs, a_pod("taken-0"), {}));
  ASSERT_TRUE(api().create(kServices, kNs, a_service("named"), {}));
  ASSERT_TRUE(api().create(kConfigMaps, kNs, a_config_map("mapped-config-0"), {}));
  for (const char* name : {"taken", "named", "mapped"}) {
    submit(name, 1, Json::object());
    EXPECT_TRUE(eventually([&] {
      const auto job = api().get(kTrainingJobs, kNs, name);
      return job && (*job)["status"].dump().find("NameConflict") != std::string::npos;
    })) << name
        << " " << trouble();
  }
}

// Until one of its status writes meets a conflict, and it reads the job again.
void Rights::be_written_to_by_others() {
  submit("busy", 1, Json::object());
  ASSERT_TRUE(becomes("busy", "Running")) << trouble();
  const auto has_read = [&] {
    const auto all = requests();
    return std::ranges::any_of(
        all, [](const Request& one) { return one.right == "get training.coxswain.dev/trainingjobs"; });
  };
  int turn = 0;
  EXPECT_TRUE(eventually([&] {
    ++turn;
    for (int i = 0; i < 20; ++i) {
      const Json note = {
          {"metadata", {{"annotations", {{"example.com/turn", std::to_string(20 * turn + i)}}}}},
          {"spec", {{"suspend", turn % 2 == 0}}}};
      api().merge_patch(kTrainingJobs, kNs, "busy", note, {});
    }
    return has_read();
  })) << "no conflict";
}

TEST_P(Rights, SufficeForAWholeLifeAndNoneIsThereInVain) {
  ASSERT_NO_FATAL_FAILURE(live());
  ASSERT_NO_FATAL_FAILURE(meet_strangers());
  ASSERT_NO_FATAL_FAILURE(be_written_to_by_others());
  EXPECT_EQ(program_->terminate(), 0);

  std::set<std::string> vain = granted(manifests_);
  std::set<std::string> refused;
  const auto all = requests();
  for (const Request& request : all) {
    vain.erase(request.right);
    if (!request.allowed || request.code == 403) refused.insert(request.line);
    EXPECT_TRUE(!in_namespaces() || !request.ns.empty()) << "asked for the whole cluster: " << request.line;
  }
  EXPECT_THAT(refused, IsEmpty());
  std::cout << GetParam() << ": " << all.size() << " requests, none refused; "
            << granted(manifests_).size() - vain.size() << " of " << granted(manifests_).size()
            << " rights used\n";
  // Asked for by the admission plugin on behalf of each child, so not a request: see the test below.
  EXPECT_THAT(vain, UnorderedElementsAre("update training.coxswain.dev/trainingjobs/finalizers"));
}

TEST_P(Rights, FinalizersIsWhatChildrenTakeWhereOwnersAreGuarded) {
  submit("guarded", 1, Json::object());
  EXPECT_TRUE(becomes("guarded", "Running")) << trouble();
  Json role = only(manifests_, "ClusterRole", "coxswain-operator");
  std::erase_if(role["rules"].get_ref<Json::array_t&>(),
                [](const Json& rule) { return rule["resources"][0] == "trainingjobs/finalizers"; });
  ASSERT_EQ(plane().kubectl({"replace", "-f", "-"}, role.dump()).exit_code, 0);
  submit("refused", 1, Json::object());
  EXPECT_TRUE(eventually([&] {
    const auto job = api().get(kTrainingJobs, kNs, "refused");
    return job && (*job)["status"].dump().find("OperatorLacksRights") != std::string::npos;
  })) << trouble();
}

TEST_P(Rights, ReachNoSecretNoContainerAndNoOtherNamespace) {
  EXPECT_TRUE(may({"create", "pods", "-n", kNs})) << "the question itself does not work";
  for (const char* where : {kNs, kOperatorNamespace}) {
    EXPECT_FALSE(may({"get", "secrets", "-n", where}));
    EXPECT_FALSE(may({"list", "secrets", "-n", where}));
    EXPECT_FALSE(may({"create", "pods", "--subresource=exec", "-n", where}));
    EXPECT_FALSE(may({"update", "trainingjobs", "-n", where}));
    EXPECT_FALSE(may({"patch", "trainingjobs", "-n", where}));
    EXPECT_FALSE(may({"create", "serviceaccounts", "--subresource=token", "-n", where}));
    EXPECT_FALSE(may({"create", "rolebindings", "-n", where}));
    EXPECT_FALSE(may({"*", "*", "-n", where}));
  }
  EXPECT_EQ(may({"create", "pods", "-n", "team-c"}), !in_namespaces());
  EXPECT_EQ(may({"list", "nodes"}), !in_namespaces());
  EXPECT_FALSE(may({"get", "leases/other", "-n", kOperatorNamespace}));
  EXPECT_FALSE(may({"update", "leases", "-n", kNs}));
}

}  // namespace
}  // namespace coxswain::testing
