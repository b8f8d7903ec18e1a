// What the operator depends on goes away and comes back: API server, etcd, connections.
#include <iostream>

#include "tests/integration_faults/scene.h"

namespace coxswain::testing {
namespace {

using namespace std::chrono_literals;

constexpr int kJobs = 6;

class Outages : public FaultTest {
 protected:
  void SetUp() override {
    FaultTest::SetUp();
    if (!IsSkipped()) start();
  }
  void TearDown() override {
    program_.reset();
    storm_.reset();
    FaultTest::TearDown();
  }
  Storm& storm() { return *storm_; }
  FaultProxy& proxy() { return *proxy_; }

  void start() {
    proxy_ = std::make_unique<FaultProxy>(plane());
    storm_ = std::make_unique<Storm>(plane(), invariants(), StormOptions{kJobs, storm_seed()});
    program_ = std::make_unique<OperatorProcess>(operator_for(*proxy_, storm_->ns()));
    program_->start();
  }
  // Some more attempts end, so that there is work under way.
  void blow() { let_it_blow(storm(), storm().attempts_ended() + kJobs / 2); }

  // Each fault is answered by a bounded number of requests, on top of what the attempts cost.
  void expect_it_came_through(const std::string& faults, int count, int64_t requests_a_fault) {
    EXPECT_TRUE(program_->running()) << "the operator has ended: " << tail(program_->log_file());
    see_it_through(storm());
    expect_quiet(proxy());
    const int64_t allowed = requests_a_fault * count + 60 * (storm().attempts_ended() + kJobs);
    EXPECT_LT(proxy().requests(), allowed) << Json(proxy().requests_by_kind()).dump(2);
    std::cout << "seed " << storm_seed() << ": " << count << " times " << faults << " over " << kJobs
              << " jobs; " << storm().summary() << "; " << proxy().requests() << " requests, violations "
              << invariants().violations().size() << "\n";
  }

 private:
  std::unique_ptr<FaultProxy> proxy_;
  std::unique_ptr<Storm> storm_;
  std::unique_ptr<OperatorProcess> program_;
};

TEST_F(Outages, TheApiServerIsKilledAndStarted) {
  constexpr int kTimes = 2;
  for (int i = 0; i < kTimes; ++i) {
    blow();
    plane().restart_api_server();
  }
  expect_it_came_through("the API server killed", kTimes, 150);
}

TEST_F(Outages, EtcdIsKilledAndStarted) {
  constexpr int kTimes = 2;
  for (int i = 0; i < kTimes; ++i) {
    blow();
    plane().kill_etcd();
    std::this_thread::sleep_for(1s);  // long enough for writes to fail
    plane().start_etcd();
    plane().wait_until_ready();
  }
  expect_it_came_through("etcd killed", kTimes, 150);
}

TEST_F(Outages, ConnectionsAreCutStallAndTrickle) {
  std::mt19937 random(storm_seed());
  int faults = 0;
  for (int round = 0; round < 2; ++round) {
    for (int cuts = 0; cuts < 5; ++cuts, ++faults) {
      storm().tick();
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 200));
      proxy().cut();
    }
    proxy().cut_after(1 + random() % 4000);  // in the middle of heads, bodies, events
    const int64_t connections = proxy().connections() + 5;
    EXPECT_TRUE(eventually([&] {
      storm().tick();
      return proxy().connections() >= connections;
    }));
    proxy().cut_after(0);
    proxy().stall(true);
    std::this_thread::sleep_for(1s);
    proxy().stall(false);
    proxy().slow(64);
    blow();
    proxy().slow(0);
    faults += 3;
  }
  expect_it_came_through("connections cut, stalled or slow", faults, 150);
}

class DeadConnections : public FaultTest {};

// Neither side is told that a connection is dead: only time tells.
TEST_F(DeadConnections, AreGivenUpAfterAWhile) {
  HalfOpen& one = start_half_open();
  see_it_through(one.storm, 150s);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - one.frozen;
  EXPECT_TRUE(one.program.running());
  std::cout << "all of the operator's connections half-open: came through in at most " << took.count()
            << " s; " << one.storm.summary() << "; " << one.proxy.requests() << " requests\n";
  EXPECT_LT(one.proxy.requests(), 500) << Json(one.proxy.requests_by_kind()).dump(2);
}

}  // namespace
}  // namespace coxswain::testing
