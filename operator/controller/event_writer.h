// Events about jobs (events.k8s.io/v1), for `kubectl describe`. Best effort: a pass only hands them over;
// they are written beside it, and one that is lost is no harm to training.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "operator/client/api_client.h"
#include "operator/client/clock.h"
#include "operator/logging/job_log.h"
#include "operator/reconcile/plan.h"

namespace coxswain {

struct EventWriterOptions {
  std::string controller = "coxswain-operator";  // reportingController
  std::string instance = "coxswain-operator";    // reportingInstance: this process, say its pod's name
  bool logged = false;                           // each is a log line about its job, too
  // An event with the same words is counted (series) without asking the server for it first while this has
  // not passed since the last one, as client-go does.
  Duration series_window = std::chrono::minutes(6);
  size_t waiting_max = 1000;  // more than this that wait to be written: the oldest is dropped
  // After a stop is asked for, what waits is still written for this long.
  std::chrono::milliseconds drain_limit = std::chrono::seconds(2);
};

class EventWriter {
 public:
  EventWriter(ApiClient& api, EventWriterOptions options);

  // Never waits. Safe from any thread.
  void publish(const TrainingJob& job, const Event& event, TimePoint now);

  // Writes all that waits; returns when it is done. From one thread, and not beside run().
  void flush();
  // Writes what comes, until asked to stop.
  void run(std::stop_token stop);

 private:
  struct Waiting {
    JobRef job;
    std::string name;  // of the Event
    Json object;       // as created
    TimePoint time;
  };
  struct Written {
    int64_t count = 1;
    TimePoint time;
  };

  std::optional<Waiting> next();
  Json object_of(const TrainingJob& job, const Event& event, TimePoint now) const;
  void write(const Waiting& waiting);
  // Each: what the server said.
  ApiResult<Json> create(const Waiting& waiting);
  ApiResult<Json> count(const Waiting& waiting, int64_t count);
  void forget_old(TimePoint now);

  ApiClient& api_;
  const EventWriterOptions options_;
  std::mutex mutex_;  // for waiting_ and dropped_
  std::condition_variable_any changed_;
  std::deque<Waiting> waiting_;
  size_t dropped_ = 0;
  std::map<std::string, Written> written_;  // by namespace/name; of whoever flushes
};

// "2026-12-01T05:29:28.123000Z": metav1.MicroTime, which takes exactly six digits.
std::string format_micro_time(TimePoint time);

// What the controller was doing, for an Event's action: one word for each reason of reasons.h.
std::string action_of(const std::string& reason);

}  // namespace coxswain
