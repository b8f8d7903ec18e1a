// The level-based loop around reconcile(): watches jobs and their children, and for each job that something
// happened to makes a pass: observe → reconcile → status → actions → events. Why it was woken is forgotten;
// everything is read again. Its own status writes don't wake it.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "operator/client/api_client.h"
#include "operator/client/clock.h"
#include "operator/client/reflector.h"
#include "operator/controller/child_writer.h"
#include "operator/controller/progress_reader.h"
#include "operator/controller/work_queue.h"
#include "operator/reconcile/reconcile.h"

namespace coxswain {

struct ControllerOptions {
  std::string watched_namespace;  // "": all
  Settings settings;
  // How often a running job's rank 0 is asked for its progress; settings.progress_interval says how often it
  // is written.
  Duration progress_interval = std::chrono::seconds(15);
  // After a write that got no answer or was refused: doubled with each failure in a row.
  Duration retry_base = std::chrono::seconds(1);
  Duration retry_max = std::chrono::minutes(5);
};

// Used by one thread; the ApiClient and the ProgressReader (may be null: no progress) must outlive it.
class Controller {
 public:
  Controller(ApiClient& api, ProgressReader* progress, Clock clock, ControllerOptions options);

  // Does all that is due and returns without waiting: the time by which it must be called again though
  // nothing happens.
  TimePoint step();

  // step() whenever something happens or is due, until asked to stop; a pass begun is finished.
  void run(std::stop_token stop);

 private:
  using Key = WorkQueue::Key;
  using Index = std::map<std::string, std::set<Key>>;  // children by their controller's UID

  // What passes over a job leave for the next one; losing it costs a few requests and nothing else.
  struct JobState {
    int failures = 0;  // in a row
    std::vector<NameConflict> conflicts;
    std::vector<Rejection> rejections;
    TimePoint retry_creation{};
    int64_t progress_attempt = -1;
    std::optional<Progress> progress;
    TimePoint progress_asked{};
  };

  void wake();
  void on_job(const Json& before, const Json& after);
  void on_child(Index& index, const Json& before, const Json& after);
  void pass(const Key& key);
  Observed look(const TrainingJob& job, JobState& state, TimePoint now);
  void ask_progress(const TrainingJob& job, JobState& state, TimePoint now);
  std::vector<Json> children(const Reflector& reflector, const Index& index, const std::string& uid) const;
  // False: the pass ends here and the job has been queued again.
  bool write_status(const Key& key, JobState& state, const Json& object, const TrainingJobStatus& status);
  bool write_children(const Key& key, JobState& state, const TrainingJob& job, const Plan& plan);
  bool settle(const Key& key, JobState& state, const ActionResult& result);
  Duration next_backoff(JobState& state);
  Reflector* reflector_of(const Resource& resource);

  ApiClient& api_;
  ProgressReader* progress_;
  const Clock clock_;
  const ControllerOptions options_;

  std::mutex mutex_;  // for woken_ only
  std::condition_variable_any wake_up_;
  bool woken_ = false;

  WorkQueue queue_;
  std::map<Key, JobState> states_;
  Index pods_of_;
  Index services_of_;
  Index config_maps_of_;
  Reflector jobs_;
  Reflector pods_;
  Reflector services_;
  Reflector config_maps_;
};

}  // namespace coxswain
