// What the controller knows of the cluster: TrainingJobs and their children (by label), and where wanted the
// nodes, in all namespaces or in those listed, each kept true by an informer. Of services and config maps
// only metadata is asked for, of pods and nodes only a part is kept (trim.h), so memory grows with our own
// pods and not with anybody else's.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "operator/client/informer.h"

namespace coxswain {

struct ClusterViewOptions {
  std::vector<std::string> namespaces;  // empty: all
  bool nodes = false;                   // watching them takes rights in the whole cluster
  WatchSettings watch;
};

// Called as ObjectStore::OnChange is.
struct ClusterViewHandlers {
  ObjectStore::OnChange on_job;
  ObjectStore::OnChange on_child;
  ObjectStore::OnChange on_node;
  std::function<void()> on_ready;  // poll() has something to do
};

// As with an Informer: poll() from one thread, or start(); all else from any thread.
class ClusterView {
 public:
  using Objects = std::vector<ObjectStore::Object>;

  ClusterView(ApiClient& api, ClusterViewOptions options, const Clock& clock,
              const ClusterViewHandlers& handlers);

  TimePoint poll();
  // A thread for each watch; they end when asked to stop.
  std::vector<std::jthread> start();
  // Every kind has been listed once.
  bool synced() const { return unlisted().empty(); }
  // What has not: "pods" or, of a namespace, "pods of team-a".
  std::vector<std::string> unlisted() const;

  Objects jobs() const;
  ObjectStore::Object job(const ObjectKey& key) const;  // null where there is none
  Objects pods(const std::string& ns, const std::string& job_uid) const;
  Objects services(const std::string& ns, const std::string& job_uid) const;
  Objects config_maps(const std::string& ns, const std::string& job_uid) const;
  // Pods of ours that are bound to it.
  Objects pods_on_node(const std::string& node) const;
  ObjectStore::Object node(const std::string& name) const;  // null also where nodes aren't watched
  Objects nodes() const;                                    // the same

  // The answers to own writes; see Note [Own writes]. Kinds that aren't watched are ignored.
  void remember(const Resource& resource, Json object);
  void forget(const Resource& resource, const ObjectKey& key, const std::string& uid);

 private:
  // Informers of one kind, by namespace ("": all).
  using Kind = std::map<std::string, std::unique_ptr<Informer>>;

  const ObjectStore* store(const Resource& resource, const std::string& ns) const;
  ObjectStore* store(const Resource& resource, const std::string& ns);
  Objects owned(const Resource& resource, const std::string& ns, const std::string& job_uid) const;

  std::map<std::string, Kind> kinds_;  // by plural
};

}  // namespace coxswain
