// The operator, killed between its writes.
#include <signal.h>

#include <atomic>
#include <iostream>
#include <memory>
#include <random>

#include "tests/integration_faults/scene.h"

namespace coxswain::testing {
namespace {

using namespace std::chrono_literals;

constexpr int kKills = 200;
constexpr int kJobs = 20;
// A life ends right before or right after one of its first writes.
constexpr int kWritesInALife = 8;

// When the operator that runs now is to be killed.
struct Sentence {
  pid_t pid = 0;
  int writes_left = 0;  // only for the proxy's thread
  bool before = false;  // the last write never reaches the API server; else its answer never the operator
  std::atomic<bool> executed = false;

  void hear(FaultProxy& proxy, const SeenRequest& request, bool is_before) {
    if (!request.writes() || executed || before != is_before) return;
    if (--writes_left > 0) return;
    ::kill(pid, SIGKILL);
    executed = true;
    proxy.cut();
  }
};

class KilledBetweenWrites : public FaultTest {
 protected:
  // True: at its write; false: nothing was written for so long that it was killed in its sleep.
  bool live_and_die(OperatorProcess& program, FaultProxy& proxy, Storm& storm, std::mt19937& random) {
    program.start();
    const auto sentence = std::make_shared<Sentence>();
    sentence->pid = program.pid();
    sentence->writes_left = 1 + static_cast<int>(random() % kWritesInALife);
    sentence->before = random() % 2 == 0;
    proxy.watch({[&proxy, sentence](const SeenRequest& request) { sentence->hear(proxy, request, true); },
                 [&proxy, sentence](const SeenRequest& request) { sentence->hear(proxy, request, false); }});
    const auto asleep = std::chrono::steady_clock::now() + 10s;
    while (!sentence->executed && program.running() && std::chrono::steady_clock::now() < asleep) {
      storm.tick();
      std::this_thread::sleep_for(5ms);
    }
    const bool at_a_write = sentence->executed.exchange(true);
    program.kill();
    proxy.watch({});
    proxy.cut();
    return at_a_write;
  }
};

TEST_F(KilledBetweenWrites, NothingIsLostAndNothingDoubled) {
  std::mt19937 random(storm_seed());
  FaultProxy proxy(plane());
  Storm storm(plane(), invariants(), {.jobs = kJobs, .seed = storm_seed()});
  start_half_open();  // it takes its time: outages_test.cpp looks at what became of it
  const auto began = std::chrono::steady_clock::now();
  int kills = 0;
  int asleep = 0;
  OperatorProcess program(operator_for(proxy, storm.ns()));
  while (kills < kKills && asleep < 10) (live_and_die(program, proxy, storm, random) ? kills : asleep)++;
  EXPECT_EQ(kills, kKills) << "the operator does not get so far as to write: " << tail(program.log_file());
  program.start();
  see_it_through(storm);
  expect_quiet(proxy);
  const int64_t requests = proxy.requests();
  // Each life lists five kinds and looks at what its predecessor may have done; each attempt is some thirty
  // requests of its own.
  const int64_t allowed = 20 * (kills + asleep) + 60 * (storm.attempts_ended() + kJobs);
  EXPECT_LT(requests, allowed) << Json(proxy.requests_by_kind()).dump(2);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::cout << "seed " << storm_seed() << ": " << kills << " kills between writes over " << kJobs << " jobs ("
            << asleep << " more in its sleep); " << storm.summary() << "; " << requests << " requests, "
            << invariants().changes() << " changes seen, violations " << invariants().violations().size()
            << ", " << took.count() << " s\n";
}

}  // namespace
}  // namespace coxswain::testing
