// What must hold at every moment of the life of TrainingJobs, whatever fails: checked on each change, in
// order. Knows the API's objects and nothing of the operator's code.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/integration_faults/etcd_history.h"

namespace coxswain::testing {

// - Never two live pods of one rank of one job. Live: there, and not ended.
// - Pods of an attempt are created only when none of an earlier one is left, and only when the status says
// so.
// - A pod is deleted only when the status says why: its attempt is over, or the job is.
// - attempt and restart counts never go back, and grow by one at most; a count only with its attempt.
// - Complete and Failed are for ever, and nothing is created after them.
//
// Safe from any thread.
class Invariants {
 public:
  struct Pod {
    std::string name;
    std::string uid;
    std::string job_uid;
    int64_t attempt = 0;
    std::string rank;
    bool running = false;
    bool ended = false;
    bool being_deleted = false;
  };
  struct Job {
    nlohmann::json object;
    std::vector<Pod> pods;  // in the order of their names

    int64_t attempt() const;
    bool suspend() const;
    bool has(const std::string& condition) const;  // is True
    bool finished() const { return has("Complete") || has("Failed"); }
    int64_t restarts(const std::string& kind) const;  // counted, disruptions, hangs
  };

  void take(const Change& change);
  // A pod that the test itself deletes: told before it does.
  void excuse_deletion(const std::string& uid);

  std::map<std::string, Job> jobs(const std::string& ns) const;  // by name
  std::vector<std::string> violations() const;
  int64_t changes() const;

 private:
  using Key = std::pair<std::string, std::string>;  // namespace, name

  void take_job(const Key& key, const Change& change);
  void take_pod(const Key& key, const Change& change);
  void created(const Pod& pod, const Change& change);
  void check_live(const Pod& pod, const Change& change);
  void deletion_began(const Pod& pod, const Change& change);
  const Job* job_of(const std::string& uid) const;
  void violated(const Change& change, const std::string& what);

  mutable std::mutex mutex_;
  std::map<Key, Job> jobs_;
  std::map<Key, Pod> pods_;
  std::set<std::string> excused_;
  std::vector<std::string> violations_;
  int64_t changes_ = 0;
};

}  // namespace coxswain::testing
