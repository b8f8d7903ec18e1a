#include "tests/integration_faults/scene.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <random>

#include "tests/integration/fixture.h"
#include "tests/integration_deploy/installation.h"

namespace coxswain::testing {

namespace {

// Everything that lasts longer than a test.
struct Scene {
  Scene() : plane(options()), history(plane, [this](const Change& change) { invariants.take(change); }) {
    install(plane, "cluster-wide");
  }
  static ControlPlaneOptions options() {
    ControlPlaneOptions options = options_of_environment();
    options.api_server_flags = {kStoresJson};
    return options;
  }

  TemporaryFolder folder;
  ControlPlane plane;
  Invariants invariants;
  EtcdHistory history;
};

std::unique_ptr<Scene>& scene() {
  static std::unique_ptr<Scene> one;
  return one;
}

}  // namespace

// In an order of their own: the storm needs the control plane.
std::unique_ptr<FaultTest::HalfOpen>& FaultTest::half_open() {
  static std::unique_ptr<HalfOpen> one;
  return one;
}

void FaultTest::stop_all() {
  half_open().reset();
  scene().reset();
}

namespace {

class StopsAll : public ::testing::Environment {
 public:
  void TearDown() override { FaultTest::stop_all(); }
};
const ::testing::Environment* const kStopsAll = ::testing::AddGlobalTestEnvironment(new StopsAll);

}  // namespace

unsigned storm_seed() {
  static const unsigned seed = [] {
    const char* given = std::getenv("COXSWAIN_STORM_SEED");
    return given != nullptr ? static_cast<unsigned>(std::atoi(given)) : std::random_device{}() % 100'000;
  }();
  return seed;
}

void FaultTest::SetUp() {
  if (std::getenv("COXSWAIN_TEST_EXISTING_CLUSTER") != nullptr) {
    GTEST_SKIP() << "no control plane here: that of COXSWAIN_TEST_EXISTING_CLUSTER is not killed";
  }
  if (skipped_without_control_plane()) return;
  if (scene() == nullptr) scene() = std::make_unique<Scene>();
  write_token(plane().service_account_token(kOperatorNamespace, kOperatorAccount));
}

void FaultTest::TearDown() {
  if (scene() == nullptr) return;
  EXPECT_TRUE(history().catch_up());
  EXPECT_THAT(invariants().violations(), ::testing::IsEmpty()) << "seed " << storm_seed();
}

ControlPlane& FaultTest::plane() {
  return scene()->plane;
}
Invariants& FaultTest::invariants() {
  return scene()->invariants;
}
EtcdHistory& FaultTest::history() {
  return scene()->history;
}
const std::filesystem::path& FaultTest::folder() {
  return scene()->folder.path();
}

void FaultTest::write_token(const std::string& token) {
  // As the kubelet replaces it: a reader sees the one or the other.
  const std::string fresh = scene()->folder.write("token.new", token);
  std::filesystem::rename(fresh, folder() / "token");
}

OperatorProcessOptions FaultTest::operator_for(const FaultProxy& proxy, const std::string& ns) {
  return {.kubeconfig = proxy.kubeconfig(scene()->folder, folder() / "token"),
          .flags = {"--namespaces=" + ns, "--kube-api-qps=1000", "--kube-api-burst=2000"}};
}

FaultTest::HalfOpen& FaultTest::start_half_open() {
  if (half_open() != nullptr) return *half_open();
  half_open() = std::make_unique<HalfOpen>(plane(), invariants(), *this);
  HalfOpen& one = *half_open();
  one.program.start();
  EXPECT_TRUE(eventually([&] { return one.storm.all_run(); })) << one.program.log();
  one.proxy.freeze();
  one.frozen = std::chrono::steady_clock::now();
  let_it_blow(one.storm, 2);
  return one;
}

void FaultTest::let_it_blow(Storm& storm, int64_t attempts) {
  EXPECT_TRUE(eventually([&] {
    storm.tick();
    return storm.attempts_ended() >= attempts;
  })) << storm.summary()
      << "\nseed " << storm_seed();
}

void FaultTest::see_it_through(Storm& storm, std::chrono::seconds bound) {
  EXPECT_TRUE(storm.run_to_the_end(bound)) << storm.summary() << "\nseed " << storm_seed();
  ASSERT_TRUE(history().catch_up());
  storm.expect_all_is_accounted_for();
}

void FaultTest::expect_quiet(const FaultProxy& proxy) {
  int64_t before = -1;
  EXPECT_TRUE(eventually([&] {
    const int64_t now = proxy.requests();
    std::this_thread::sleep_for(std::chrono::seconds(1));
    return std::exchange(before, now) == now;
  })) << "requests do not end: "
      << Json(proxy.requests_by_kind()).dump();
}

}  // namespace coxswain::testing
