// Two operators and one lease, each a process of its own.
#include <gmock/gmock.h>

#include <memory>
#include <sstream>

#include "tests/client/objects.h"
#include "tests/integration/fake_nodes.h"
#include "tests/integration/fixture.h"
#include "tests/integration/operator_process.h"

namespace coxswain::testing {
namespace {

using coxswain::resources::kTrainingJobs;
using ::testing::HasSubstr;

const Resource kLeases{"coordination.k8s.io", "v1", "leases", "Lease"};
constexpr char kLease[] = "the-lease";

class TwoOperators : public ControlPlaneTest {
 protected:
  void SetUp() override {
    ControlPlaneTest::SetUp();
    if (IsSkipped()) return;
    nodes_ = std::make_unique<FakeNodes>(plane(), FakeNodesOptions{.namespace_name = ns()});
    for (auto& one : operators_) {
      one = std::make_unique<OperatorProcess>(OperatorProcessOptions{
          .kubeconfig = plane().kubeconfig(),
          .flags = {"--namespaces=" + ns(), "--leader-elect=true", "--leader-election-namespace=" + ns(),
                    "--leader-election-id=" + std::string(kLease), "--leader-election-lease-duration=6s",
                    "--leader-election-renew-deadline=5s", "--leader-election-retry-period=200ms"}});
      one->start_and_wait();
    }
  }
  void TearDown() override {
    for (auto& one : operators_) one.reset();
    nodes_.reset();
    ControlPlaneTest::TearDown();
  }

  static bool leads(OperatorProcess& one) {
    return one.metrics().find("\ncoxswain_leader 1\n") != std::string::npos;
  }
  OperatorProcess* leader() {
    for (auto& one : operators_) {
      if (leads(*one)) return one.get();
    }
    return nullptr;
  }
  OperatorProcess& other_than(const OperatorProcess& one) {
    return operators_[0].get() == &one ? *operators_[1] : *operators_[0];
  }
  OperatorProcess& elected() {
    EXPECT_TRUE(eventually([&] { return leader() != nullptr; }));
    return *leader();
  }
  // Its counters of requests that change anything but a lease.
  static std::vector<std::string> writes_of(OperatorProcess& one) {
    std::vector<std::string> result;
    std::istringstream lines(one.metrics());
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("rest_client_requests_total{")) continue;
      if (line.find("resource=\"leases\"") != std::string::npos) continue;
      const bool reads = line.find("verb=\"get\"") != std::string::npos ||
                         line.find("verb=\"list\"") != std::string::npos ||
                         line.find("verb=\"watch\"") != std::string::npos;
      if (!reads) result.push_back(line);
    }
    return result;
  }
  void expect_it_works(const std::string& job) {
    ASSERT_TRUE(api().create(kTrainingJobs, ns(), a_training_job(job, 2), {}));
    EXPECT_TRUE(eventually([&] {
      const auto now = api().get(kTrainingJobs, ns(), job);
      return now && now->value("/status/phase"_json_pointer, "") == "Running";
    })) << job;
  }

  std::unique_ptr<OperatorProcess> operators_[2];
  std::unique_ptr<FakeNodes> nodes_;
};

TEST_F(TwoOperators, OneLeadsAndTheOtherStandsByReady) {
  OperatorProcess& first = elected();
  EXPECT_FALSE(leads(other_than(first)));
  EXPECT_TRUE(other_than(first).is_ready());
  expect_it_works("job");
  EXPECT_TRUE(eventually([&] {
    return first.metrics().find("coxswain_jobs{phase=\"Running\"} 1\n") != std::string::npos;
  })) << first.metrics();
  EXPECT_THAT(other_than(first).metrics(), HasSubstr("coxswain_jobs{phase=\"Running\"} 0\n"));
}

// By each one's own count of the requests that it has sent.
TEST_F(TwoOperators, OnlyTheOneThatLeadsWrites) {
  OperatorProcess& first = elected();
  expect_it_works("job");
  ASSERT_TRUE(eventually([&] { return writes_of(first).size() >= 3; })) << first.metrics();
  EXPECT_THAT(writes_of(other_than(first)), ::testing::IsEmpty());
}

// Each in its turn is asked to stop and comes back, as a Deployment does it, while jobs come.
TEST_F(TwoOperators, ARollingUpdateLosesNoJobAndDoublesNothing) {
  constexpr int kJobs = 12;
  int submitted = 0;
  const auto submit = [&](int count) {
    for (int i = 0; i < count; ++i, ++submitted) {
      ASSERT_TRUE(
          api().create(kTrainingJobs, ns(), a_training_job("job-" + std::to_string(submitted), 2), {}));
    }
  };
  elected();
  for (auto& one : operators_) {
    submit(kJobs / 4);
    EXPECT_EQ(one->terminate(), 0) << one->log();
    submit(kJobs / 4);
    one->start_and_wait();
  }
  ASSERT_EQ(submitted, kJobs);
  for (int i = 0; i < kJobs; ++i) {
    Json status;
    EXPECT_TRUE(eventually([&] {
      const auto job = api().get(kTrainingJobs, ns(), "job-" + std::to_string(i));
      status = job ? job->value("status", Json::object()) : Json::object();
      return status.value("phase", "") == "Running";
    })) << i;
    EXPECT_EQ(status.value("attempt", 0), 0) << status;
    EXPECT_EQ(status.value("/restarts/counted"_json_pointer, 0), 0) << status;
    EXPECT_EQ(status.value("/restarts/disruptions"_json_pointer, 0), 0) << status;
  }
  const auto pods = api().list(resources::kPods, ns(), {});
  ASSERT_TRUE(pods);
  EXPECT_EQ(pods->items.size(), 2U * kJobs);
}

TEST_F(TwoOperators, OneThatIsKilledIsReplaced) {
  OperatorProcess& first = elected();
  first.kill();
  EXPECT_TRUE(eventually([&] { return leads(other_than(first)); })) << other_than(first).log();
  expect_it_works("job");
}

TEST_F(TwoOperators, OneThatIsAskedToStopHandsTheLeaseOver) {
  OperatorProcess& first = elected();
  EXPECT_EQ(first.terminate(), 0) << first.log();
  EXPECT_TRUE(eventually([&] { return leads(other_than(first)); })) << other_than(first).log();
  expect_it_works("job");
}

TEST_F(TwoOperators, OneWhoseLeaseIsTakenEndsAtOnce) {
  OperatorProcess& first = elected();
  ASSERT_TRUE(
      api().merge_patch(kLeases, ns(), kLease, {{"spec", {{"holderIdentity", "somebody-else"}}}}, {}));
  EXPECT_TRUE(eventually([&] { return !first.running(); }));
  EXPECT_THAT(first.log(), HasSubstr("the lease is lost"));
  EXPECT_TRUE(eventually([&] { return leads(other_than(first)); })) << other_than(first).log();
}

}  // namespace
}  // namespace coxswain::testing
