// A local copy of one kind's objects, kept true by list and watch. Errors never end it: it backs off and
// lists again, whether the API says 410 as a status or as an event, or just closes the stream.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "operator/client/api_client.h"
#include "operator/client/clock.h"

namespace coxswain {

// Used by one thread.
class Reflector {
 public:
  using Key = std::pair<std::string, std::string>;  // namespace, name
  // `before` or `after` is null where the object appears or goes. Bookmarks and relists that change nothing
  // don't call.
  using OnChange = std::function<void(const Json& before, const Json& after)>;

  Reflector(ApiClient& api, Resource resource, std::string ns, std::string label_selector, Clock clock,
            OnChange on_change, std::function<void()> on_ready);

  // Takes in all that has come; never waits for more. Returns when to call again at the latest (backing off),
  // or TimePoint::max() when on_ready will tell.
  TimePoint poll();

  // True once the first list has succeeded.
  bool filled() const { return filled_; }
  const std::map<Key, Json>& objects() const { return objects_; }
  const Json* find(const std::string& ns, const std::string& name) const;
  // Takes in the answer to the owner's own write before the watch brings it, so that the next decision is not
  // made on the object before it.
  void remember(const Json& object);

 private:
  bool relist();
  bool open_watch();
  void drain();
  void apply(const Json& object, bool deleted);
  void fail();

  ApiClient& api_;
  const Resource resource_;
  const std::string namespace_;
  const std::string label_selector_;
  const Clock clock_;
  const OnChange on_change_;
  const std::function<void()> on_ready_;

  std::map<Key, Json> objects_;
  std::unique_ptr<Watch> watch_;
  std::string version_;  // "": list before watching
  bool filled_ = false;
  int failures_ = 0;
  TimePoint not_before_{};
};

}  // namespace coxswain
