// The level-based loop around reconcile(): watches jobs and their children, and for each job that something
// happened to makes a pass: observe → reconcile → status → actions → events. Why it was woken is forgotten;
// everything is read again. Its own status writes don't wake it.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "operator/client/api_client.h"
#include "operator/client/clock.h"
#include "operator/controller/child_writer.h"
#include "operator/controller/cluster_view.h"
#include "operator/controller/controller_observer.h"
#include "operator/controller/event_writer.h"
#include "operator/controller/parallel_runner.h"
#include "operator/controller/progress_log.h"
#include "operator/controller/progress_reader.h"
#include "operator/reconcile/reconcile.h"

namespace coxswain {

struct ControllerOptions {
  std::vector<std::string> namespaces;  // watched; empty: all
  bool watch_nodes = false;
  WatchSettings watch;
  Settings settings;
  // After a write that got no answer or was refused: doubled with each failure in a row.
  Duration retry_base = std::chrono::seconds(1);
  Duration retry_max = std::chrono::minutes(5);
  // From a change of a child to the pass: what happens to other children of the job meanwhile costs no pass
  // of its own.
  Duration child_batch{0};
  // Of run(): jobs worked on at a time (never one by two), and writes of one job under way at a time.
  int workers = 4;
  // Of run(): jobs whose agents are asked at a time. Agents that don't answer hold up nothing but this.
  int askers = 4;
  int parallel_writes = 16;
  // When asked to stop, jobs that are due already are worked on for this long; a pass begun is finished.
  std::chrono::milliseconds drain_limit = std::chrono::seconds(10);
  EventWriterOptions events;
  ControllerObserver* observer = nullptr;  // must outlive the controller
};

// Agents are asked beside the passes: what they answer wakes the job.
//
// Either step(), from one thread and without any other (the in-process form, which a virtual clock can
// drive), or run(). The ApiClient and the ProgressReader (may be null: no progress; run() calls it from
// several threads) must outlive it.
class Controller {
 public:
  Controller(ApiClient& api, ProgressReader* progress, Clock clock, ControllerOptions options);

  // Does all that is due and returns without waiting: the time by which it must be called again though
  // nothing happens.
  TimePoint step();

  // A thread for each watch and each worker, until asked to stop; returns when all have ended.
  void run(std::stop_token stop);

  // The caches are filled. Safe from any thread.
  bool synced() const { return view_.synced(); }
  const ClusterView& view() const { return view_; }

 private:
  using Key = WorkQueue::Key;

  // What a refusal is of; a gang that is released and comes back is the same start still.
  struct Start {
    int64_t generation = 0;
    int64_t restarts = 0;
    bool operator==(const Start&) const = default;
  };

  // What passes over a job leave for the next one; losing it costs a few requests and nothing else. Used by
  // whoever works on the key.
  struct JobState {
    std::string uid;
    std::vector<NameConflict> conflicts;
    std::vector<Rejection> rejections;
    TimePoint retry_creation{};  // after a conflict
    Start start;                 // that rejections are of
    ProgressLog progress;
  };

  void on_job(const Json& before, const Json& after);
  void on_child(const Json& before, const Json& after);
  void on_node(const Json& before, const Json& after);
  void work();
  void ask();
  void wait_until_synced(std::stop_token stop);
  std::shared_ptr<JobState> state_of(const Key& key, const std::string& uid);
  void forget(const Key& key);

  void try_pass(const Key& key);
  PassResult pass(const Key& key);
  Observed look(const TrainingJob& job, JobState& state, TimePoint now);
  void look_at_nodes(Observed& observed, const Key& key);
  // What agents say of it, later: with a pass of its own.
  void ask_soon(const TrainingJob& job, const JobState& state);
  void try_ask(const Key& key);
  bool ask_agents(const Key& key);
  // A result: the pass ends here with it, and the job has been queued again.
  std::optional<PassResult> write_status(const TrainingJob& job, const Json& object,
                                         const TrainingJobStatus& status);
  std::optional<PassResult> write_children(JobState& state, const TrainingJob& job, const Plan& plan);
  std::optional<PassResult> settle(JobState& state, const TrainingJob& job, const ActionResult& result);

  ApiClient& api_;
  ProgressReader* progress_;
  const Clock clock_;
  const ControllerOptions options_;
  ControllerObserver& observer_;
  int parallel_writes_ = 1;

  WorkQueue queue_;
  WorkQueue asks_;    // jobs whose agents are to be asked
  std::mutex mutex_;  // for states_ only, and to wait with
  std::condition_variable_any stopped_;
  std::map<Key, std::shared_ptr<JobState>> states_;
  EventWriter events_;
  ClusterView view_;
  ParallelRunner writers_;
};

}  // namespace coxswain
