// Jobs that a GitOps tool applies: its time to live leaves the job; what kstatus says of each phase.
#include <gtest/gtest.h>

#include "operator/reconcile/gitops.h"
#include "tests/operator_core/harness.h"

namespace coxswain::testing {
namespace {

using namespace std::chrono_literals;

TEST(GitOps, IsToldByTheMarksOfTheTools) {
  ObjectMeta argo, labelled, flux, helm_of_flux, helm;
  argo.annotations["argocd.argoproj.io/tracking-id"] = "app:training.coxswain.dev/TrainingJob:n/j";
  labelled.labels["argocd.argoproj.io/instance"] = "app";
  flux.labels["kustomize.toolkit.fluxcd.io/name"] = "apps";
  helm_of_flux.labels["helm.toolkit.fluxcd.io/name"] = "release";
  helm.labels["app.kubernetes.io/instance"] = "release";  // Helm and people set it too
  helm.labels["app.kubernetes.io/managed-by"] = "Helm";
  EXPECT_EQ(gitops_tool(argo), "Argo CD");
  EXPECT_EQ(gitops_tool(labelled), "Argo CD");
  EXPECT_EQ(gitops_tool(flux), "Flux");
  EXPECT_EQ(gitops_tool(helm_of_flux), "Flux");
  EXPECT_EQ(gitops_tool(helm), std::nullopt);
}

World finished(const std::map<std::string, std::string>& labels) {
  World world("{nodes: 2, runPolicy: {ttlSecondsAfterFinished: 60}}");
  world.job.metadata.labels = labels;
  world.start();
  world.end(0, 0);
  world.end(1, 0);
  world.settle();
  EXPECT_EQ(world.phase(), "Complete");
  world.advance(60s);
  return world;
}

TEST(GitOps, TheTimeToLiveRemovesTheChildrenOnlyAndSaysSoOnce) {
  World world = finished({{"kustomize.toolkit.fluxcd.io/name", "apps"}});
  const size_t events = world.events.size();
  world.settle();
  EXPECT_FALSE(world.job_deleted);
  EXPECT_EQ(world.names(), "");
  EXPECT_FALSE(world.has_service);
  EXPECT_TRUE(world.config_maps.empty());
  ASSERT_EQ(world.events.size(), events + 1);
  EXPECT_EQ(world.events.back().reason, "TimeToLiveOver");
  EXPECT_NE(world.events.back().message.find("Flux"), std::string::npos);
  for (int i = 0; i < 5; ++i) {
    world.advance(24h);
    const Plan plan = world.pass();
    EXPECT_TRUE(!plan.status && plan.actions.empty() && plan.events.empty()) << "and trains never again";
  }
  EXPECT_EQ(world.phase(), "Complete");
}

TEST(GitOps, AnyOtherJobIsDeleted) {
  World world = finished({{"app.kubernetes.io/instance", "release"}});
  world.pass();
  EXPECT_TRUE(world.job_deleted);
}

// As kstatus computes it: Stalled → Failed; Reconciling → InProgress; Ready → Current.
std::string kstatus(const World& world) {
  if (world.job.status.observed_generation != world.job.metadata.generation) return "InProgress";
  if (world.is(kConditionStalled)) return "Failed";
  if (world.is(kConditionReconciling)) return "InProgress";
  return world.is(kConditionReady) ? "Current" : "InProgress";
}

TEST(Kstatus, FollowsTheJob) {
  World world("{nodes: 2, runPolicy: {backoffLimit: 1}}");
  EXPECT_EQ(kstatus(world), "InProgress");
  world.settle();
  EXPECT_EQ(kstatus(world), "InProgress") << "starting";
  world.run_all();
  world.settle();
  EXPECT_EQ(kstatus(world), "Current");
  world.job.spec.suspend = true;
  world.job.metadata.generation += 1;
  EXPECT_EQ(kstatus(world), "InProgress");
  world.pass();
  EXPECT_EQ(kstatus(world), "InProgress") << "suspending";
  world.finish_deletions();
  world.settle();
  EXPECT_EQ(kstatus(world), "Current") << "suspended is as wished";
  world.job.spec.suspend = false;
  world.start();
  EXPECT_EQ(kstatus(world), "Current");
  world.end(1, 70);
  world.advance(3s);
  world.settle();
  EXPECT_EQ(kstatus(world), "InProgress") << "restarting";
  world.finish_deletions();
  world.advance(1min);
  world.start();
  world.end(1, 70);
  world.advance(3s);
  world.settle();
  EXPECT_EQ(kstatus(world), "Failed");
}

TEST(Kstatus, AChangeOfAFinishedJobIsObserved) {
  World world = finished({});
  world.job.spec.run_policy.ttl_seconds_after_finished.reset();
  world.job.metadata.generation += 1;
  world.settle();
  EXPECT_EQ(kstatus(world), "Current");
}

}  // namespace
}  // namespace coxswain::testing
