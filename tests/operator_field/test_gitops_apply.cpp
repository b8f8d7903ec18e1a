// The same manifest applied again and again, as Argo CD, Flux and people do.
#include <gtest/gtest.h>

#include "operator/api/parse.h"
#include "tests/client/objects.h"
#include "tests/operator_field/field_cluster.h"
#include "tests/operator_field/simulated_cluster.h"

namespace coxswain::testing {
namespace {

using namespace resources;
using namespace std::chrono_literals;

// Client-side apply: the manifest over what is there, and the manifest itself in an annotation.
void apply(SimulatedCluster& cluster, const Json& manifest) {
  Json patch = {{"spec", manifest["spec"]}};
  patch["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = manifest.dump();
  const auto applied = cluster.api.merge_patch(kTrainingJobs, kNs, "j", patch, {});
  ASSERT_TRUE(applied) << applied.error().message;
}

TEST(ApplyAgain, ChangesNothing) {
  SimulatedCluster cluster;
  ASSERT_TRUE(cluster.submit("j", 2));
  const Json manifest = a_training_job("j", 2);
  apply(cluster, manifest);
  cluster.settle();
  ASSERT_EQ(cluster.phase(), "Running");
  const Json before = *cluster.api.get(kTrainingJobs, kNs, "j");
  const std::vector<Json> pods = cluster.pods();
  cluster.faulty->forget_calls();
  for (int i = 0; i < 10; ++i) {
    apply(cluster, manifest);
    cluster.pass_time(1min);
  }
  EXPECT_EQ(*cluster.api.get(kTrainingJobs, kNs, "j"), before) << "spec, generation, status and version";
  EXPECT_EQ(cluster.pods(), pods);
  EXPECT_EQ(cluster.count(Verb::kUpdateStatus) + cluster.count(Verb::kCreate) + cluster.count(Verb::kRemove),
            0);
}

TEST(ApplyAgain, TheOperatorNeverWritesTheSpec) {
  SimulatedCluster cluster;
  ASSERT_TRUE(cluster.submit("j", 2, with_config()));
  const Json spec = (*cluster.api.get(kTrainingJobs, kNs, "j"))["spec"];
  cluster.settle();
  cluster.end("j-1", 70);
  cluster.pass_time(1min);
  cluster.end_all("j", 0);
  cluster.pass_time(1min);
  EXPECT_EQ((*cluster.api.get(kTrainingJobs, kNs, "j"))["spec"], spec);
  for (const ApiCall& call : cluster.faulty->calls()) {
    const bool writes_spec = call.verb == Verb::kUpdate || call.verb == Verb::kMergePatch;
    EXPECT_FALSE(writes_spec && call.plural == "trainingjobs");
  }
}

}  // namespace
}  // namespace coxswain::testing
