// TrainingJobs to which things happen: each attempt is ended once, in a way that is written down, so that
// what the statuses say at the end can be held against it.
#pragma once

#include <map>
#include <random>
#include <string>

#include "tests/integration/control_plane.h"
#include "tests/integration/fake_nodes.h"
#include "tests/integration_faults/invariants.h"

namespace coxswain::testing {

struct StormOptions {
  int jobs = 20;
  unsigned seed = 1;
};

// One thread drives it. The API server must be there whenever it is called.
class Storm {
 public:
  Storm(ControlPlane& plane, Invariants& invariants, StormOptions options);
  ~Storm();

  const std::string& ns() const { return ns_; }
  // One more job; `with_config`: one of the runtime's, so that it has a config map.
  void submit(const std::string& name, int nodes, bool with_config);

  // Looks at every job once; ends what runs, at random, and resumes what was suspended.
  void tick();
  // From now on nothing is ended any more but jobs: some of them fail for good, the others complete.
  void wind_down() { winding_down_ = true; }
  bool over() const;
  // Calls tick() until all jobs are over; false: not within this time.
  bool run_to_the_end(std::chrono::seconds bound);

  // Holds the statuses against what was done, with expectations of GoogleTest.
  void expect_all_is_accounted_for() const;
  int64_t attempts_ended() const;
  std::string summary() const;  // "11 failures, 8 disruptions, 5 suspensions; 15 Complete, 5 Failed"
  // Every pod of every job, and the statuses say so.
  bool all_run() const;

 private:
  struct Deeds {
    int64_t failures = 0;
    int64_t disruptions = 0;
    int64_t suspensions = 0;
    int64_t ended_attempt = -1;  // the last that something was done to
    int64_t finishing = -1;      // the attempt whose pods are being ended with 0
    bool doomed = false;         // ends as Failed
    bool failed = false;         // by our doing: its last failure is not a restart
  };

  bool is_steady(const Invariants::Job& job, const Deeds& deeds) const;
  void end_attempt(const std::string& name, const Invariants::Job& job, Deeds& deeds);
  bool fail(const Invariants::Pod& pod, int exit_code, const std::string& reason = "");
  bool remove(const Invariants::Pod& pod);
  bool set_suspend(const std::string& name, bool suspend);
  void finish(const Invariants::Job& job, Deeds& deeds);
  int pick(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }

  ControlPlane& plane_;
  Invariants& invariants_;
  const std::string ns_;
  std::mt19937 random_;
  std::map<std::string, Deeds> jobs_;
  bool winding_down_ = false;
  FakeNodes nodes_;
};

}  // namespace coxswain::testing
