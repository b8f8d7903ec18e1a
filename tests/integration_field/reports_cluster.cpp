// Reports that take a real API server: its garbage collection, its conflicts, what the operator asks of it.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "operator/api/parse.h"
#include "operator/client/metadata.h"
#include "tests/client/objects.h"
#include "tests/integration_field/server_field.h"

namespace coxswain::testing {
namespace {

using namespace resources;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

// --- Garbage collection

bool nothing_is_left(ServerField& cluster) {
  for (const Resource& resource : {kPods, kServices, kConfigMaps}) {
    ListOptions ours;
    ours.label_selector = "training.coxswain.dev/job-name=j";
    const auto found = cluster.server().list(resource, cluster.ns(), ours);
    if (!found || !found->items.empty()) return false;
  }
  return cluster.job().is_null();
}

void delete_job(ServerField& cluster, const std::string& propagation) {
  DeleteOptions options;
  options.propagation_policy = propagation;
  cluster.forget_calls();
  const auto removed = cluster.server().remove(kTrainingJobs, cluster.ns(), "j", options);
  ASSERT_TRUE(removed) << removed.error().message;
}

SERVER_REPORT(ADeletedJobsChildrenGoAndNoneIsMadeAgain) {
  ASSERT_TRUE(cluster.submit(3, with_config()));
  ASSERT_TRUE(cluster.runs());
  delete_job(cluster, "Background");
  EXPECT_TRUE(cluster.until([&] { return nothing_is_left(cluster); }));
  EXPECT_EQ(cluster.creates("pods") + cluster.creates("services") + cluster.creates("configmaps"), 0);
}

SERVER_REPORT(AJobThatIsDeletedAfterItsChildrenGetsNoNewOnesMeanwhile) {
  ASSERT_TRUE(cluster.submit(3, with_config()));
  ASSERT_TRUE(cluster.runs());
  const std::string node = cluster.node_of("j-1");
  cluster.nodes().silence(node);  // so that one pod is long about its end
  delete_job(cluster, "Foreground");
  ASSERT_TRUE(cluster.until([&] { return cluster.pods().size() == 1; }));
  cluster.let_pass(1min);
  EXPECT_TRUE(cluster.job()["metadata"].contains("deletionTimestamp"));
  EXPECT_EQ(cluster.pods().size(), 1U);
  cluster.bring_back(node);
  EXPECT_TRUE(cluster.until([&] { return nothing_is_left(cluster); }));
  EXPECT_EQ(cluster.creates("pods") + cluster.creates("services") + cluster.creates("configmaps"), 0);
}

// --- Deaths and conflicts

SERVER_REPORT(TheOperatorDiesBetweenDeletingFailedPodsAndCountingTheFailure) {
  ASSERT_TRUE(cluster.submit(3));
  ASSERT_TRUE(cluster.runs());
  for (const std::string& node : cluster.nodes().nodes())
    cluster.nodes().silence(node);  // deletions take long
  cluster.end("j-2", 9, "the disk is on fire");
  ASSERT_TRUE(cluster.until([&] {
    const auto pods = cluster.pods();
    return std::ranges::any_of(pods, metadata::being_deleted);
  }));
  cluster.restart_operator();
  for (const std::string& node : cluster.nodes().nodes()) cluster.bring_back(node);
  ASSERT_TRUE(cluster.runs(1));
  EXPECT_EQ(cluster.status().restarts.counted, 1);
  EXPECT_THAT(cluster.status().last_failure->message, HasSubstr("the disk is on fire"));
}

SERVER_REPORT(ConflictsOfStatusWritesAreDecidedOnFreshStateAndNeverLeaveAStaleRunning) {
  ASSERT_TRUE(cluster.submit(2, {{"runPolicy", {{"backoffLimit", 20}}}}));
  ASSERT_TRUE(cluster.runs());
  cluster.forget_calls();
  std::atomic<int64_t> marks{0};
  std::jthread rival([&](std::stop_token ended) {
    while (!ended.stop_requested()) {
      const Json mark = {{"metadata", {{"annotations", {{"mark", std::to_string(++marks)}}}}}};
      cluster.server().merge_patch(kTrainingJobs, cluster.ns(), "j", mark, {});
    }
  });
  const auto met_a_conflict = [&] {
    const auto calls = cluster.calls();
    return std::ranges::any_of(calls, [](const AuditedCall& call) {
      return call.resource == "trainingjobs/status" && call.code == 409;
    });
  };
  int64_t attempt = 0;
  for (; attempt < 4 && !met_a_conflict(); ++attempt) {
    cluster.end("j-1", 1);
    ASSERT_TRUE(cluster.runs(attempt + 1));
  }
  EXPECT_TRUE(met_a_conflict());
  EXPECT_EQ(cluster.status().restarts.counted, attempt) << "each once";
  ASSERT_TRUE(cluster.patch({{"suspend", true}}));
  ASSERT_TRUE(cluster.until_phase("Suspended"));
  EXPECT_FALSE(has_condition(cluster.status(), kConditionRunning));
}

// --- What the operator asks

SERVER_REPORT(OnlyChildrenOfJobsAreEverAskedForSoMemoryDoesNotGrowWithForeignPods) {
  ASSERT_TRUE(cluster.submit(2));
  ASSERT_TRUE(cluster.runs());
  cluster.restart_operator();
  int asked = 0;
  for (const AuditedCall& call : cluster.calls()) {
    if ((call.verb != "list" && call.verb != "watch") || call.resource == "trainingjobs") continue;
    EXPECT_THAT(call.uri, HasSubstr("labelSelector=training.coxswain.dev%2Fjob-name")) << call.resource;
    ++asked;
  }
  EXPECT_GE(asked, 6) << "pods, services and config maps, twice";
}

SERVER_REPORT(AServiceCalledCoxswainOperatorInTheOperatorsEnvironmentIsHarmless) {
  OperatorProcessOptions options;
  options.env = {{"COXSWAIN_OPERATOR_SERVICE_HOST", "10.0.0.1"},
                 {"COXSWAIN_OPERATOR_SERVICE_PORT", "8080"},
                 {"COXSWAIN_OPERATOR_SERVICE_PORT_METRICS", "8080"},
                 {"COXSWAIN_OPERATOR_PORT", "tcp://10.0.0.1:8080"},
                 {"COXSWAIN_OPERATOR_PORT_8080_TCP", "tcp://10.0.0.1:8080"},
                 {"COXSWAIN_OPERATOR_PORT_8080_TCP_PROTO", "tcp"},
                 {"COXSWAIN_OPERATOR_PORT_8080_TCP_PORT", "8080"},
                 {"COXSWAIN_OPERATOR_PORT_8080_TCP_ADDR", "10.0.0.1"},
                 {"COXSWAIN_PORT", "tcp://10.0.0.2:80"}};
  cluster.replace_operator(std::move(options));
  ASSERT_TRUE(cluster.submit(2));
  EXPECT_TRUE(cluster.runs());
}

}  // namespace
}  // namespace coxswain::testing
