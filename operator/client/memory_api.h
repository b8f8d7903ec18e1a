// A Kubernetes API server in memory, with the behaviour that a controller can observe: resource versions,
// watches with bookmarks and 410, conflicts, subresources, graceful deletion of pods, owner garbage
// collection. tests/client's conformance suite holds it and a real API server to the same answers; where they
// differ, this is wrong.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "operator/client/api_client.h"
#include "operator/client/clock.h"

namespace coxswain {

class LabelSelector;
class MemoryStream;

// How a server answers a watch with send_initial_events. kErrorEvent: the same where no version is given.
enum class StreamingList {
  kServed,
  kRefused,     // 422: the feature is off
  kErrorEvent,  // 200, then an ERROR event of code 500: its etcd can't report progress (before 3.4.25)
  kIgnored,     // a plain watch: ADDED for each object, and never a bookmark that ends them
};

class MemoryApi : public ApiClient {
 public:
  explicit MemoryApi(Clock clock = system_time);
  ~MemoryApi() override;

  ApiResult<Json> get(const Resource&, const std::string& ns, const std::string& name) override;
  ApiResult<ObjectList> list(const Resource&, const std::string& ns, const ListOptions&) override;
  ApiResult<std::unique_ptr<Watch>> watch(const Resource&, const std::string& ns,
                                          const WatchOptions&) override;
  ApiResult<Json> create(const Resource&, const std::string& ns, const Json& object,
                         const WriteOptions&) override;
  ApiResult<Json> update(const Resource&, const std::string& ns, const Json& object,
                         const WriteOptions&) override;
  ApiResult<Json> update_status(const Resource&, const std::string& ns, const Json& object,
                                const WriteOptions&) override;
  ApiResult<Json> merge_patch(const Resource&, const std::string& ns, const std::string& name,
                              const Json& patch, const WriteOptions&) override;
  ApiResult<Json> remove(const Resource&, const std::string& ns, const std::string& name,
                         const DeleteOptions&) override;

  // --- What no API server offers: for the program that owns this one, and for tests
  // Stores `object` as it is, status, uid and timestamps included, under a new resourceVersion.
  void restore(const Resource&, const Json& object);
  // What a scheduler's Binding does: the one way to give a pod its node.
  ApiResult<Json> bind_pod(const std::string& ns, const std::string& name, const std::string& node);
  // Forgets all past events: a watch from before now, and a page of an earlier list, get 410.
  void compact();
  // Ends all open watches; with `expired`, by an ERROR event of 410.
  void end_watches(bool expired);
  // Sends a BOOKMARK to each open watch that allows them (an API server does so about once a minute).
  void send_bookmarks();
  void set_streaming_list(StreamingList mode);

 private:
  using Key = std::pair<std::string, std::string>;  // namespace, name
  struct Change {
    uint64_t version;
    Resource resource;
    WatchEventType type;
    Json object;
    Json before;  // null when added
  };
  // What is left of a list that is taken in pages.
  struct Snapshot {
    std::string version;
    std::vector<Json> items;
    bool counted;  // a server counts what remains only where nothing is selected
  };

  using Kind = std::map<Key, Json>;
  // All of these are called with mutex_ held.
  Kind& kind(const Resource& resource);
  Json* find(const Resource& resource, const std::string& ns, const std::string& name);
  // Both give the stored object a new version and tell the watches.
  Json& store(const Resource& resource, Json object);
  void erase(const Resource& resource, const Key& key);
  void publish(Change change);
  void replay(MemoryStream& stream, const WatchOptions& options);
  Snapshot snapshot(const Resource& resource, const std::string& ns, const LabelSelector& selector,
                    bool metadata_only);
  ObjectList first_page(Snapshot snapshot, int64_t limit);
  ApiResult<ObjectList> next_page(const ListOptions& options);
  ApiResult<Json> replace(const Resource& resource, const Json& current, Json next,
                          const WriteOptions& options);
  ApiResult<Json> checked_update(const Resource& resource, const std::string& ns, const Json& object,
                                 const WriteOptions& options, bool status_only);
  void start_deletion(const Resource& resource, const Json& object, int grace_seconds);
  void collect_garbage(const std::string& owner_uid);
  bool owned_by_nobody(const Json& object);
  bool uid_exists(const std::string& uid);

  Clock clock_;
  std::mutex mutex_;
  uint64_t version_ = 1;
  uint64_t compacted_ = 0;
  std::map<std::string, std::pair<Resource, Kind>> kinds_;  // by "group/plural"
  std::deque<Change> history_;
  std::vector<std::weak_ptr<MemoryStream>> streams_;
  std::map<std::string, Snapshot> snapshots_;  // by continue token
  int next_token_ = 0;
  StreamingList streaming_list_ = StreamingList::kServed;
};

}  // namespace coxswain
