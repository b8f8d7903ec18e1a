// All that was ever written to a control plane, read from its etcd: every change, once, in the one order in
// which they happened, over whatever becomes of the API server and of etcd meanwhile. None of it goes through
// the operator's own way of watching.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "tests/integration/control_plane.h"

namespace coxswain::testing {

// One write. `before` null: created; `after` null: gone.
struct Change {
  std::string key;  // "/registry/pods/NAMESPACE/NAME"
  int64_t revision = 0;
  nlohmann::json before;
  nlohmann::json after;
};

// The API server must keep its objects as JSON: start it with kStoresJson.
extern const char kStoresJson[];

class EtcdHistory {
 public:
  // From now on `take` is called with each change of a pod or a TrainingJob, by a thread of its own.
  EtcdHistory(const ControlPlane& plane, std::function<void(const Change&)> take);
  ~EtcdHistory();

  // Waits until all that has been written so far has been taken; false: not within a minute.
  bool catch_up();

 private:
  void follow(std::stop_token stop);
  void watch_once(const std::stop_token& stop);
  void take_line(const std::string& line);
  int64_t revision_now() const;

  const int port_;
  const std::function<void(const Change&)> take_;
  std::atomic<int64_t> seen_{0};
  std::mutex mutex_;
  std::function<void()> cut_;  // ends the stream that is open
  std::jthread thread_;        // last: it uses the rest
};

}  // namespace coxswain::testing
