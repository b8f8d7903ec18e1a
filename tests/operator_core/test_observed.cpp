// Reading pods as an API server has them.
#include <gtest/gtest.h>

#include "operator/api/parse.h"
#include "operator/reconcile/observed.h"

namespace coxswain {
namespace {

Json pod(const std::string& status) {
  Json object = load_yaml(R"(
metadata:
  name: j-1
  uid: p
  creationTimestamp: "2026-01-01T00:00:00Z"
  labels: {training.coxswain.dev/attempt: "3", training.coxswain.dev/node-rank: "1"}
  annotations: {training.coxswain.dev/spec-fingerprint: 1-f}
  ownerReferences: [{uid: u, controller: true}]
)",
                          "pod")
                    .value()
                    .front();
  object["status"] = load_yaml(status, "status").value().front();
  return object;
}

TEST(Observe, ARunningPod) {
  const ObservedPod seen = observe_pod(pod("{phase: Running, conditions: [{type: Ready, status: 'True'}]}"));
  EXPECT_EQ(seen.name + seen.uid + seen.spec_fingerprint, "j-1p1-f");
  EXPECT_EQ(seen.attempt, 3);
  EXPECT_EQ(seen.node_rank, 1);
  EXPECT_EQ(seen.phase, PodPhase::kRunning);
  EXPECT_TRUE(seen.ready && seen.created && !seen.terminating());
}

TEST(Observe, Finalizers) {
  Json object = pod("{phase: Running}");
  EXPECT_TRUE(observe_pod(object).finalizers.empty());
  object["metadata"]["finalizers"] = {"example.com/a", 7, "example.com/b"};
  EXPECT_EQ(observe_pod(object).finalizers, (std::vector<std::string>{"example.com/a", "example.com/b"}));
}

TEST(Observe, HowTheTrainerEndedNotItsSidecars) {
  const ObservedPod seen = observe_pod(pod(R"({phase: Failed, containerStatuses: [
    {name: sidecar, state: {terminated: {exitCode: 1}}},
    {name: trainer, state: {terminated: {exitCode: 137, reason: OOMKilled, message: m, finishedAt: "2026-01-01T00:00:09Z"}}}]})"));
  ASSERT_TRUE(seen.termination);
  EXPECT_EQ(seen.termination->exit_code, 137);
  EXPECT_EQ(seen.termination->reason + seen.termination->message, "OOMKilledm");
  EXPECT_EQ(seen.termination->finished, parse_time("2026-01-01T00:00:09Z"));
}

std::string waits(const std::string& status) {
  const ObservedPod seen = observe_pod(pod(status));
  if (!seen.waiting) return "";
  return (seen.waiting->init ? "init:" : "") + seen.waiting->container + " " + seen.waiting->reason;
}

TEST(Observe, WhyAPodWaits) {
  EXPECT_EQ(
      waits("{phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]}"),
      " Unschedulable");
  EXPECT_EQ(
      waits("{phase: Pending, containerStatuses: [{name: t, state: {waiting: {reason: ErrImagePull}}}]}"),
      "t ErrImagePull");
  EXPECT_EQ(waits("{phase: Pending, initContainerStatuses: [{name: i, state: {waiting: {reason: "
                  "CrashLoopBackOff}}}]}"),
            "init:i CrashLoopBackOff");
  EXPECT_EQ(
      waits(
          "{phase: Pending, containerStatuses: [{name: t, state: {waiting: {reason: ContainerCreating}}}]}"),
      "");
}

TEST(Observe, InitContainers) {
  EXPECT_EQ(observe_pod(pod("{initContainerStatuses: [{name: fetch, started: false, state: {running: {}}}]}"))
                .running_init,
            "fetch");
  EXPECT_EQ(
      observe_pod(pod("{initContainerStatuses: [{name: sidecar, started: true, state: {running: {}}}]}"))
          .running_init,
      "");
  const auto failed =
      observe_pod(pod("{phase: Failed, initContainerStatuses: [{name: fetch, state: {terminated: {exitCode: "
                      "4, message: m}}}]}"))
          .failed_init;
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->container + failed->message, "fetchm");
  EXPECT_EQ(failed->exit_code, 4);
}

TEST(Observe, NodesAndWhetherTheyAreReady) {
  const auto node = [](const char* ready) {
    return observe_node(Json::parse(
        std::string(R"({"status":{"conditions":[{"type":"MemoryPressure","status":"False"},
          {"type":"Ready","status":")") +
        ready + R"(","reason":"r","message":"m","lastTransitionTime":"2026-01-01T00:00:09Z"}]}})"));
  };
  EXPECT_TRUE(node("True").ready);
  EXPECT_FALSE(node("False").ready);
  EXPECT_FALSE(node("Unknown").ready);
  EXPECT_EQ(node("Unknown").since, parse_time("2026-01-01T00:00:09Z"));
  EXPECT_TRUE(observe_node(Json()).ready) << "a node that has told nothing yet";
}

TEST(Observe, Disruptions) {
  const ObservedPod seen =
      observe_pod(pod("{phase: Failed, reason: Evicted, conditions: [{type: DisruptionTarget, status: "
                      "'True', reason: TerminationByKubelet}]}"));
  EXPECT_EQ(seen.reason, "Evicted");
  EXPECT_EQ(seen.disruption, "TerminationByKubelet");
}

TEST(Observe, NeverThrowsOnWhatIsNoPod) {
  for (const char* text :
       {"null", "{}", R"({"metadata":[],"status":{"conditions":[1],"containerStatuses":[null]}})",
        R"({"metadata":{"labels":{"training.coxswain.dev/attempt":"x1"}}})"}) {
    EXPECT_EQ(observe_pod(Json::parse(text)).attempt, -1) << text;
  }
}

TEST(Observe, OnlyWhatThisJobControls) {
  TrainingJob job;
  job.metadata.name = "j";
  job.metadata.uid = "u";
  Json foreign = pod("{phase: Running}");
  foreign["metadata"]["ownerReferences"][0]["uid"] = "someone";
  Json borrowed = pod("{phase: Running}");
  borrowed["metadata"]["ownerReferences"][0]["controller"] = false;
  const Json service = {
      {"metadata", {{"name", "j"}, {"ownerReferences", {{{"uid", "u"}, {"controller", true}}}}}}};
  Json config_map = service;
  config_map["metadata"]["labels"] = {{"training.coxswain.dev/attempt", "2"}};
  const auto shared = [](const Json& object) { return std::make_shared<const Json>(object); };
  const Observed seen = observe(job, {shared(pod("{phase: Running}")), shared(foreign), shared(borrowed)},
                                {shared(service)}, {shared(config_map), shared(foreign)});
  EXPECT_EQ(seen.pods.size(), 1U);
  EXPECT_TRUE(seen.has_service);
  EXPECT_EQ(seen.config_map_attempts, std::set<int64_t>{2});
}

}  // namespace
}  // namespace coxswain
