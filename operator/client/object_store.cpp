#include "operator/client/object_store.h"

#include "operator/client/resource_version.h"

namespace coxswain {

namespace {

const Json kNone;

bool is_newer(const std::string& version, const std::string& than) {
  return compare_versions(version, than) == std::partial_ordering::greater;
}

}  // namespace

Indexers by_owner_uid() {
  return {{kOwnerUidIndex, [](const Json& object) -> std::vector<std::string> {
             const Json& owner = metadata::controller(object);
             if (!owner.is_object()) return {};
             return {owner.value("uid", "")};
           }}};
}

ObjectStore::ObjectStore(Trim trim, Indexers indexers, OnChange on_change)
    : trim_(std::move(trim)), indexers_(std::move(indexers)), on_change_(std::move(on_change)) {}

void ObjectStore::apply(StoreChange change) {
  std::lock_guard lock(mutex_);
  std::visit([this](auto& one) { on(one); }, change);
}

void ObjectStore::remember(Json object) {
  std::lock_guard lock(mutex_);
  // The watch has been past this version: whatever became of the object since, it has told.
  const auto order = compare_versions(metadata::resource_version(object), reached_);
  if (order == std::partial_ordering::less || order == std::partial_ordering::equivalent) return;
  put(std::move(object));
}

void ObjectStore::forget(const ObjectKey& key, const std::string& uid) {
  std::lock_guard lock(mutex_);
  const auto it = objects_.find(key);
  if (it == objects_.end() || metadata::uid(*it->second) != uid) return;
  forgotten_[key] = {uid, metadata::resource_version(*it->second), listed_.contains(key)};
  erase(it);
}

void ObjectStore::on(ListBegins&) {
  listing_ = true;
  listed_.clear();
  for (auto& [_, forgotten] : forgotten_) forgotten.listed = false;
}

void ObjectStore::on(Listed& listed) {
  const ObjectKey key = metadata::key(listed.object);
  const auto forgotten = forgotten_.find(key);
  if (forgotten != forgotten_.end() && forgotten->second.uid == metadata::uid(listed.object)) {
    forgotten->second.listed = true;
    return;
  }
  listed_.insert(key);
  put(std::move(listed.object));
}

void ObjectStore::on(ListEnds& end) {
  for (auto it = objects_.begin(); it != objects_.end();) {
    const auto current = it++;
    // An own write after the list was made is not in it.
    const bool later = is_newer(metadata::resource_version(*current->second), end.version);
    if (!later && !listed_.contains(current->first)) erase(current);
  }
  listed_.clear();
  std::erase_if(forgotten_, [&](const auto& entry) {
    return !entry.second.listed && !is_newer(entry.second.version, end.version);
  });
  listing_ = false;
  reached_ = end.version;
  filled_ = true;
}

void ObjectStore::on(Written& written) {
  reached_ = metadata::resource_version(written.object);
  put(std::move(written.object));
}

void ObjectStore::on(Deleted& deleted) {
  const std::string version = metadata::resource_version(deleted.object);
  if (!listing_) reached_ = version;
  const ObjectKey key = metadata::key(deleted.object);
  if (const auto forgotten = forgotten_.find(key);
      forgotten != forgotten_.end() && forgotten->second.uid == metadata::uid(deleted.object)) {
    forgotten_.erase(forgotten);
  }
  const auto it = objects_.find(key);
  if (it == objects_.end()) return;
  // Another object has that name by now.
  if (is_newer(metadata::resource_version(*it->second), version)) return;
  listed_.erase(it->first);
  erase(it);
}

void ObjectStore::on(Reached& reached) {
  reached_ = reached.version;
}

// It, or one that had its name before it.
bool ObjectStore::is_forgotten(const ObjectKey& key, const Json& object) const {
  const auto forgotten = forgotten_.find(key);
  if (forgotten == forgotten_.end()) return false;
  return forgotten->second.uid == metadata::uid(object) ||
         is_newer(forgotten->second.version, metadata::resource_version(object));
}

void ObjectStore::put(Json object) {
  const ObjectKey key = metadata::key(object);
  if (key.second.empty() || is_forgotten(key, object)) return;
  const auto it = objects_.find(key);
  Object before = it == objects_.end() ? nullptr : it->second;
  if (before != nullptr) {
    const auto order =
        compare_versions(metadata::resource_version(object), metadata::resource_version(*before));
    if (order == std::partial_ordering::less || order == std::partial_ordering::equivalent) return;
    if (metadata::uid(object) != metadata::uid(*before)) {  // its end was missed: it has that name no more
      erase(it);
      before = nullptr;
    }
  }
  object["metadata"].erase("managedFields");
  if (trim_) trim_(object);
  const Object after = std::make_shared<const Json>(std::move(object));
  objects_[key] = after;
  const Json& was = before == nullptr ? kNone : *before;
  reindex(key, was, *after);
  if (on_change_) on_change_(was, *after);
}

void ObjectStore::erase(std::map<ObjectKey, Object>::iterator it) {
  const Object gone = it->second;
  const ObjectKey key = it->first;
  objects_.erase(it);
  reindex(key, *gone, kNone);
  if (on_change_) on_change_(*gone, kNone);
}

void ObjectStore::reindex(const ObjectKey& key, const Json& before, const Json& after) {
  for (const auto& [name, values_of] : indexers_) {
    Index& index = indexes_[name];
    if (!before.is_null()) {
      for (const std::string& value : values_of(before)) {
        const auto entry = index.find(value);
        if (entry == index.end()) continue;
        entry->second.erase(key);
        if (entry->second.empty()) index.erase(entry);
      }
    }
    if (after.is_null()) continue;
    for (const std::string& value : values_of(after)) index[value].insert(key);
  }
}

bool ObjectStore::filled() const {
  std::lock_guard lock(mutex_);
  return filled_;
}

size_t ObjectStore::size() const {
  std::lock_guard lock(mutex_);
  return objects_.size();
}

ObjectStore::Object ObjectStore::find(const ObjectKey& key) const {
  std::lock_guard lock(mutex_);
  const auto it = objects_.find(key);
  return it == objects_.end() ? nullptr : it->second;
}

std::vector<ObjectStore::Object> ObjectStore::all() const {
  std::lock_guard lock(mutex_);
  std::vector<Object> result;
  result.reserve(objects_.size());
  for (const auto& [_, object] : objects_) result.push_back(object);
  return result;
}

std::vector<ObjectStore::Object> ObjectStore::by_index(const std::string& index,
                                                       const std::string& value) const {
  std::lock_guard lock(mutex_);
  std::vector<Object> result;
  const auto of_index = indexes_.find(index);
  if (of_index == indexes_.end()) return result;
  const auto keys = of_index->second.find(value);
  if (keys == of_index->second.end()) return result;
  for (const ObjectKey& key : keys->second) {
    if (const auto it = objects_.find(key); it != objects_.end()) result.push_back(it->second);
  }
  return result;
}

}  // namespace coxswain
