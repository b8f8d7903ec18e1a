#include "tests/integration/fixture.h"

#include <iostream>

namespace coxswain::testing {

namespace {

std::unique_ptr<ControlPlane>& shared() {
  static std::unique_ptr<ControlPlane> plane;
  return plane;
}

// Before main() ends, so that nothing of it depends on the order in which statics go.
class StopsIt : public ::testing::Environment {
 public:
  void TearDown() override { shared().reset(); }
};

const ::testing::Environment* const kStopsIt = ::testing::AddGlobalTestEnvironment(new StopsIt);

}  // namespace

ControlPlane& shared_control_plane() {
  if (shared() == nullptr) {
    const auto began = std::chrono::steady_clock::now();
    shared() = std::make_unique<ControlPlane>();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    std::cout << "control plane up in " << took.count() << " s\n";
  }
  return *shared();
}

bool skipped_without_control_plane() {
  const auto missing = no_control_plane();
  if (missing) [&] { GTEST_SKIP() << *missing; }();
  return missing.has_value();
}

void ControlPlaneTest::SetUp() {
  if (skipped_without_control_plane()) return;
  ns_ = plane().new_namespace();
}

void ControlPlaneTest::TearDown() {
  if (!ns_.empty()) plane().delete_namespace(ns_);
}

}  // namespace coxswain::testing
