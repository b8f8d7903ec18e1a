// A world small enough for a table: one job, its children, a clock. Plans are carried out on it as the
// controller carries them out on an API server, so tests assert the state of the world, not lists of calls.
#pragma once

#include <string>
#include <vector>

#include "operator/reconcile/reconcile.h"

namespace coxswain::testing {

class World {
 public:
  // `spec` as YAML flow or block text; a config is added unless the text has `config` or `template`.
  explicit World(const std::string& spec = "{}");

  TrainingJob job;
  std::vector<ObservedPod> pods;
  bool has_service = false;
  std::set<int64_t> config_maps;
  std::optional<Progress> progress;
  std::optional<TimePoint> moved;
  std::optional<TimePoint> heard;
  std::vector<AgentAnswer> agents;
  std::vector<NameConflict> conflicts;
  std::vector<Rejection> rejections;
  bool job_deleted = false;
  Settings settings;
  TimePoint now;
  std::vector<Event> events;
  std::optional<Duration> requeue_after;  // of the last pass

  Plan plan() const;
  // Carries a plan out, at most `writes` writes of it (as an operator that dies then); events only after all.
  void apply(const Plan& plan, int writes = 1 << 20);
  // One pass. Returns the plan.
  Plan pass();
  // Passes until nothing changes at this moment.
  void settle();
  void advance(Duration duration) { now += duration; }

  // --- What happens out there
  ObservedPod& pod(int64_t rank);  // of the newest attempt; fails the test where there is none
  void run_all();                  // every pending pod runs and is ready
  void end(int64_t rank, int64_t exit_code, const std::string& message = "", const std::string& reason = "");
  void vanish(int64_t rank);
  void refuse(const std::string& message, int code = 403, const std::string& name = "j-0");
  void accept() { rejections.clear(); }
  // The node that the pod of that rank is on is not Ready since now, and its kubelet silent.
  void lose_node(int64_t rank);
  // Every agent answers: rank r is at steps[r], in phase train.
  void everyone_at(const std::vector<int64_t>& steps);
  void finish_deletions();  // pods that are being deleted are gone
  void start();             // from nothing to all pods running

  // --- What can be seen
  std::string phase() const { return to_string(job.status.phase); }
  bool is(const char* condition) const { return has_condition(job.status, condition); }
  std::string reason(const char* condition) const;
  std::string names() const;  // "j-0@0 j-1@0!": name@attempt, ! being deleted
  bool has_event(const std::string& reason) const;
  std::string said(const char* condition) const;  // its message
  std::string cause() const { return job.status.last_failure ? job.status.last_failure->cause : ""; }

 private:
  void perform(const Action& action);
  void create(const CreateChild& create);
  int next_uid_ = 0;
};

}  // namespace coxswain::testing
