// The control plane that the tests of this binary share, the operator's rights in it, and everything that was
// ever written to it under the eyes of Invariants.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/integration/control_plane.h"
#include "tests/integration/operator_process.h"
#include "tests/integration_faults/etcd_history.h"
#include "tests/integration_faults/fault_proxy.h"
#include "tests/integration_faults/invariants.h"
#include "tests/integration_faults/storm.h"

namespace coxswain::testing {

// COXSWAIN_STORM_SEED, else a new one for each run; printed with the figures.
unsigned storm_seed();

class FaultTest : public ::testing::Test {
 public:
  // After the last test.
  static void stop_all();

 protected:
  void SetUp() override;
  // No violation since the first test began.
  void TearDown() override;

  ControlPlane& plane();
  Invariants& invariants();
  EtcdHistory& history();

  // An operator for one namespace, through the proxy, with the token that was written last.
  OperatorProcessOptions operator_for(const FaultProxy& proxy, const std::string& ns);
  void write_token(const std::string& token);
  // Ends attempts until so many are.
  void let_it_blow(Storm& storm, int64_t attempts);

  // An operator whose connections have all gone dead without a sign, and something to do for it that it can't
  // have seen. Started once; it is left alone until it is asked for.
  struct HalfOpen {
    HalfOpen(ControlPlane& plane, Invariants& invariants, FaultTest& test)
        : proxy(plane),
          storm(plane, invariants, {2, storm_seed()}),
          program(test.operator_for(proxy, storm.ns())) {}
    FaultProxy proxy;
    Storm storm;
    OperatorProcess program;
    std::chrono::steady_clock::time_point frozen{};
  };
  HalfOpen& start_half_open();

  // Runs the storm to its end, and then holds what the statuses say against what was done.
  void see_it_through(Storm& storm, std::chrono::seconds bound = std::chrono::seconds(90));
  // Where nothing happens, nothing is asked: called with an operator that works.
  void expect_quiet(const FaultProxy& proxy);

 private:
  static const std::filesystem::path& folder();
  static std::unique_ptr<HalfOpen>& half_open();
};

}  // namespace coxswain::testing
