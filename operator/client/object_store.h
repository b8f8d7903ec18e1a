// The local copy of one kind's objects, indexed. Fed by a WatchMachine and by the answers to the owner's own
// writes; calls back for each real change, in the order in which they happened to the object.
//
// Note [Own writes]: the answer to a write is taken in at once (remember, forget), so that the next decision
// isn't made on the object before it. What the watch still brings from before that write is older by its
// resourceVersion and is passed over; when the watch brings the write itself, nothing has changed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "operator/client/metadata.h"
#include "operator/client/watch_machine.h"

namespace coxswain {

// The values under which an object is found; none: not in that index.
using IndexFunction = std::function<std::vector<std::string>(const Json&)>;
using Indexers = std::map<std::string, IndexFunction>;

inline constexpr char kOwnerUidIndex[] = "ownerUID";
// By the UID of the controller (the owner reference with controller: true).
Indexers by_owner_uid();

// Drops what nobody reads before an object is kept; see trim.h.
using Trim = std::function<void(Json&)>;

// Safe from any thread.
class ObjectStore {
 public:
  using Object = std::shared_ptr<const Json>;  // never null in what is returned by lists
  // `before` or `after` is null where the object appears or goes. Called under the store's lock, so that the
  // order is the true one: it must not call the store.
  using OnChange = std::function<void(const Json& before, const Json& after)>;

  ObjectStore(Trim trim, Indexers indexers, OnChange on_change);

  void apply(StoreChange change);
  // The answer to an own write that made or changed the object.
  void remember(Json object);
  // An own write deleted the object of this UID, and nothing of it is left.
  void forget(const ObjectKey& key, const std::string& uid);

  // True once a first list has been taken in.
  bool filled() const;
  size_t size() const;
  Object find(const ObjectKey& key) const;  // null where there is none
  std::vector<Object> all() const;          // by namespace and name
  std::vector<Object> by_index(const std::string& index, const std::string& value) const;

 private:
  using Index = std::map<std::string, std::set<ObjectKey>>;

  void on(ListBegins&);
  void on(Listed& listed);
  void on(ListEnds& end);
  void on(Written& written);
  void on(Deleted& deleted);
  void on(Reached& reached);
  void put(Json object);
  bool is_forgotten(const ObjectKey& key, const Json& object) const;
  void erase(std::map<ObjectKey, Object>::iterator it);
  void reindex(const ObjectKey& key, const Json& before, const Json& after);

  const Trim trim_;
  const Indexers indexers_;
  const OnChange on_change_;
  mutable std::mutex mutex_;
  std::map<ObjectKey, Object> objects_;
  std::map<std::string, Index> indexes_;
  bool listing_ = false;
  std::set<ObjectKey> listed_;  // since the list began
  struct Forgotten {
    std::string uid;
    std::string version;  // the last that was known of it
    bool listed = false;  // the list that is being taken in has it still
  };
  std::map<ObjectKey, Forgotten> forgotten_;  // until its DELETED has come
  std::string reached_;                       // the watch has told everything up to this version
  bool filled_ = false;
};

}  // namespace coxswain
