// A kind's objects as an API server has them, always: a WatchMachine, the requests it asks for, and the
// store it fills. Errors never end it.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

#include "operator/client/api_client.h"
#include "operator/client/clock.h"
#include "operator/client/object_store.h"
#include "operator/client/watch_machine.h"

namespace coxswain {

struct InformerOptions {
  Resource resource;
  std::string namespace_name{};  // "": all, or a kind that has none
  std::string label_selector{};
  bool metadata_only = false;
  Trim trim{};
  std::vector<std::string> unread{};  // what `trim` drops for certain, see ListOptions
  Indexers indexers{};
  WatchSettings watch{};
};

// poll() and run() are for one thread, and only one of the two is used; store() is for any. The ApiClient
// must outlive it.
class Informer {
 public:
  // `on_ready` (may be empty) is called from any thread when poll() has something to do: it must only signal.
  Informer(ApiClient& api, InformerOptions options, Clock clock, ObjectStore::OnChange on_change,
           std::function<void()> on_ready);

  // Takes in all that has come; waits for nothing but answers to requests. Returns when to call again at the
  // latest, or TimePoint::max() when on_ready will tell.
  TimePoint poll();
  // The same, as a thread of its own, until asked to stop.
  void run(std::stop_token stop);

  ObjectStore& store() { return store_; }
  const ObjectStore& store() const { return store_; }
  const InformerOptions& options() const { return options_; }

 private:
  void signal();
  void feed(WatchInput input);
  void list(ListOptions options);
  void open(WatchOptions options);
  bool receive(TimePoint until);

  ApiClient& api_;
  const InformerOptions options_;
  const Clock clock_;
  const std::function<void()> on_ready_;
  ObjectStore store_;
  WatchMachine machine_;

  std::mutex mutex_;  // for woken_ only
  std::condition_variable_any wake_up_;
  bool woken_ = false;
  std::unique_ptr<Watch> watch_;  // last: it may call signal() until it is gone
};

}  // namespace coxswain
