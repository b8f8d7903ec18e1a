// The control plane that the tests of a binary share, and the fixture that gives each test a namespace in it.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/integration/control_plane.h"

namespace coxswain::testing {

// Started by the first test that asks, stopped after the last. Only where no_control_plane() says nothing.
ControlPlane& shared_control_plane();

// Skips the test that runs, with the reason, where there is no control plane; true: skipped. For SetUp().
bool skipped_without_control_plane();

class ControlPlaneTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  ControlPlane& plane() { return shared_control_plane(); }
  ApiClient& api() { return plane().api(); }
  const std::string& ns() const { return ns_; }

 private:
  std::string ns_;
};

}  // namespace coxswain::testing
