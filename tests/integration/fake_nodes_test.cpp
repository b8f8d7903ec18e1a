// Pods on nodes without machines.
#include "tests/integration/fake_nodes.h"

#include <gmock/gmock.h>

#include "operator/client/metadata.h"
#include "tests/client/objects.h"
#include "tests/integration/fixture.h"

namespace coxswain::testing {
namespace {

using coxswain::resources::kNodes;
using coxswain::resources::kPods;
using namespace std::chrono_literals;

class OnFakeNodes : public ControlPlaneTest {
 protected:
  void create(const std::string& name) {
    const auto created = api().create(kPods, ns(), a_pod(name), {});
    ASSERT_TRUE(created) << created.error().message;
  }
  Json pod(const std::string& name) { return api().get(kPods, ns(), name).value_or(Json::object()); }
  std::string phase(const std::string& name) { return pod(name).value("/status/phase"_json_pointer, "Gone"); }
  bool becomes(const std::string& name, const std::string& wanted) {
    return eventually([&] { return phase(name) == wanted; });
  }
  Json state(const std::string& name) { return pod(name)["status"]["containerStatuses"][0]["state"]; }
};

TEST_F(OnFakeNodes, PodsRunAndEndAsTheirFateIs) {
  FakeNodes nodes(plane(), {.namespace_name = ns(), .fate = [](const Json& pod) {
                              Fate fate;
                              const std::string name = metadata::name(pod);
                              if (name == "good" || name == "bad") fate.runs_for = 0ms;
                              if (name == "bad") fate.exit_code = 7;
                              if (name == "bad") fate.message = "no such file";
                              return fate;
                            }});
  for (const char* name : {"good", "bad", "steady"}) create(name);
  EXPECT_TRUE(becomes("good", "Succeeded"));
  EXPECT_TRUE(becomes("bad", "Failed"));
  EXPECT_EQ(state("bad")["terminated"]["exitCode"], 7);
  EXPECT_EQ(state("bad")["terminated"]["message"], "no such file");
  EXPECT_TRUE(becomes("steady", "Running"));
  nodes.kubelet(ns()).end("steady", 0);
  EXPECT_TRUE(becomes("steady", "Succeeded"));
}

TEST_F(OnFakeNodes, WhatHoldsAPodUpIsThereToReadAndPasses) {
  FakeNodes nodes(plane(), {.namespace_name = ns(), .fate = [](const Json& pod) {
                              Fate fate;
                              if (metadata::name(pod) == "image") {
                                fate.waits = "ImagePullBackOff";
                                fate.waits_message = "Back-off pulling image";
                              } else {
                                fate.unschedulable = "0/3 nodes are available: 3 Insufficient memory.";
                              }
                              return fate;
                            }});
  create("image");
  create("large");
  EXPECT_TRUE(eventually([&] { return state("image")["waiting"]["reason"] == "ImagePullBackOff"; }));
  EXPECT_TRUE(eventually(
      [&] { return pod("large").value("/status/conditions/0/reason"_json_pointer, "") == "Unschedulable"; }));
  nodes.set_fate([](const Json&) { return Fate{}; });
  EXPECT_TRUE(becomes("image", "Running"));
  EXPECT_TRUE(becomes("large", "Running"));
}

TEST_F(OnFakeNodes, ADeletedPodGoesUnlessItsNodeIsLost) {
  FakeNodes nodes(plane(), {.namespace_name = ns(), .nodes = 1});
  create("first");
  create("second");
  ASSERT_TRUE(becomes("first", "Running"));
  ASSERT_TRUE(becomes("second", "Running"));
  ASSERT_TRUE(api().remove(kPods, ns(), "first", {}));
  EXPECT_TRUE(becomes("first", "Gone"));
  const std::string node = nodes.nodes()[0];
  nodes.lose(node);
  EXPECT_EQ(api().get(kNodes, "", node)->at("/status/conditions/0/status"_json_pointer), "Unknown");
  ASSERT_TRUE(api().remove(kPods, ns(), "second", {}));
  create("third");  // known to be scheduled by what it shows; by then "second" has been looked at, too
  EXPECT_TRUE(eventually(
      [&] { return pod("third").value("/status/conditions/0/reason"_json_pointer, "") == "Unschedulable"; }));
  EXPECT_TRUE(pod("second")["metadata"].contains("deletionTimestamp"));
  nodes.bring_back(node);
  EXPECT_TRUE(becomes("second", "Gone"));
  EXPECT_TRUE(becomes("third", "Running"));
}

TEST_F(OnFakeNodes, TheyGoOnOverARestartOfTheServer) {
  if (!plane().owned()) GTEST_SKIP() << "this cluster is not ours to kill";
  FakeNodes nodes(plane(), {.namespace_name = ns()});
  create("before");
  ASSERT_TRUE(becomes("before", "Running"));
  plane().restart_api_server();
  create("after");
  EXPECT_TRUE(becomes("after", "Running"));
  ASSERT_TRUE(api().remove(kPods, ns(), "before", {}));
  EXPECT_TRUE(becomes("before", "Gone"));
}

TEST_F(OnFakeNodes, AKubeletByHand) {
  FakeKubelet kubelet(plane(), ns());
  create("p");
  ASSERT_TRUE(kubelet.add_node("hand-made"));
  ASSERT_TRUE(kubelet.bind("p", "hand-made"));
  EXPECT_FALSE(kubelet.bind("p", "another")) << "bound for good";
  ASSERT_TRUE(kubelet.hold_up("p", "CreateContainerConfigError", "secret \"s\" not found"));
  EXPECT_EQ(state("p")["waiting"]["message"], "secret \"s\" not found");
  ASSERT_TRUE(kubelet.run("p"));
  EXPECT_EQ(pod("p")["spec"]["nodeName"], "hand-made");
  EXPECT_EQ(phase("p"), "Running");
  ASSERT_TRUE(kubelet.fail("p", "Evicted", "The node was low on resource: memory."));
  EXPECT_EQ(pod("p")["status"]["reason"], "Evicted");
  EXPECT_EQ(phase("p"), "Failed");
  kubelet.remove_node("hand-made");
}

}  // namespace
}  // namespace coxswain::testing
