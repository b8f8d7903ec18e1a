#include "operator/controller/cluster_view.h"

#include <algorithm>
#include <utility>

#include "contract/contract.h"
#include "operator/client/trim.h"

namespace coxswain {

namespace {

constexpr char kNodeIndex[] = "nodeName";

Indexers pod_indexers() {
  Indexers indexers = by_owner_uid();
  indexers[kNodeIndex] = [](const Json& pod) -> std::vector<std::string> {
    const auto path = Json::json_pointer("/spec/nodeName");
    if (!pod.contains(path) || !pod.at(path).is_string()) return {};
    return {pod.at(path).get<std::string>()};
  };
  return indexers;
}

InformerOptions children(const Resource& resource, bool metadata_only) {
  InformerOptions options{.resource = resource, .label_selector = contract::kLabelJobName};
  options.metadata_only = metadata_only;
  options.trim = metadata_only ? trim_to_metadata : trim_pod;
  if (!metadata_only) options.unread = unread_of_pods();
  options.indexers = metadata_only ? by_owner_uid() : pod_indexers();
  return options;
}

}  // namespace

ClusterView::ClusterView(ApiClient& api, ClusterViewOptions options, const Clock& clock,
                         const ClusterViewHandlers& handlers) {
  const auto watch = [&](InformerOptions kind, const std::string& ns, const ObjectStore::OnChange& handler) {
    kind.namespace_name = ns;
    kind.watch = options.watch;
    auto& slot = kinds_[kind.resource.plural][ns];
    slot = std::make_unique<Informer>(api, std::move(kind), clock, handler, handlers.on_ready);
  };
  if (options.namespaces.empty()) options.namespaces = {""};
  for (const std::string& ns : options.namespaces) {
    watch({.resource = resources::kTrainingJobs}, ns, handlers.on_job);
    watch(children(resources::kPods, false), ns, handlers.on_child);
    watch(children(resources::kServices, true), ns, handlers.on_child);
    watch(children(resources::kConfigMaps, true), ns, handlers.on_child);
  }
  if (options.nodes) watch({.resource = resources::kNodes, .trim = trim_node}, "", handlers.on_node);
}

TimePoint ClusterView::poll() {
  TimePoint next = TimePoint::max();
  for (auto& [_, kind] : kinds_) {
    for (auto& [ns, informer] : kind) next = std::min(next, informer->poll());
  }
  return next;
}

std::vector<std::jthread> ClusterView::start() {
  std::vector<std::jthread> threads;
  for (auto& [_, kind] : kinds_) {
    for (auto& [ns, informer] : kind) {
      threads.emplace_back([one = informer.get()](std::stop_token stop) { one->run(std::move(stop)); });
    }
  }
  return threads;
}

std::vector<std::string> ClusterView::unlisted() const {
  std::vector<std::string> result;
  for (const auto& [plural, kind] : kinds_) {
    for (const auto& [ns, informer] : kind) {
      if (!informer->store().filled()) result.push_back(ns.empty() ? plural : plural + " of " + ns);
    }
  }
  return result;
}

const ObjectStore* ClusterView::store(const Resource& resource, const std::string& ns) const {
  const auto kind = kinds_.find(resource.plural);
  if (kind == kinds_.end()) return nullptr;
  auto informer = kind->second.find(ns);
  if (informer == kind->second.end()) informer = kind->second.find("");
  return informer == kind->second.end() ? nullptr : &informer->second->store();
}

ObjectStore* ClusterView::store(const Resource& resource, const std::string& ns) {
  return const_cast<ObjectStore*>(std::as_const(*this).store(resource, ns));
}

ClusterView::Objects ClusterView::jobs() const {
  Objects result;
  for (const auto& [_, informer] : kinds_.at(resources::kTrainingJobs.plural)) {
    const Objects jobs = std::as_const(*informer).store().all();
    result.insert(result.end(), jobs.begin(), jobs.end());
  }
  return result;
}

ObjectStore::Object ClusterView::job(const ObjectKey& key) const {
  const ObjectStore* jobs = store(resources::kTrainingJobs, key.first);
  return jobs == nullptr ? nullptr : jobs->find(key);
}

ClusterView::Objects ClusterView::owned(const Resource& resource, const std::string& ns,
                                        const std::string& job_uid) const {
  const ObjectStore* children = store(resource, ns);
  return children == nullptr ? Objects{} : children->by_index(kOwnerUidIndex, job_uid);
}

ClusterView::Objects ClusterView::pods(const std::string& ns, const std::string& job_uid) const {
  return owned(resources::kPods, ns, job_uid);
}
ClusterView::Objects ClusterView::services(const std::string& ns, const std::string& job_uid) const {
  return owned(resources::kServices, ns, job_uid);
}
ClusterView::Objects ClusterView::config_maps(const std::string& ns, const std::string& job_uid) const {
  return owned(resources::kConfigMaps, ns, job_uid);
}

ClusterView::Objects ClusterView::pods_on_node(const std::string& node) const {
  Objects result;
  for (const auto& [_, informer] : kinds_.at(resources::kPods.plural)) {
    const Objects pods = std::as_const(*informer).store().by_index(kNodeIndex, node);
    result.insert(result.end(), pods.begin(), pods.end());
  }
  return result;
}

ObjectStore::Object ClusterView::node(const std::string& name) const {
  const ObjectStore* nodes = store(resources::kNodes, "");
  return nodes == nullptr ? nullptr : nodes->find({"", name});
}

ClusterView::Objects ClusterView::nodes() const {
  const ObjectStore* nodes = store(resources::kNodes, "");
  return nodes == nullptr ? Objects{} : nodes->all();
}

void ClusterView::remember(const Resource& resource, Json object) {
  ObjectStore* kind = store(resource, metadata::namespace_name(object));
  if (kind != nullptr) kind->remember(std::move(object));
}

void ClusterView::forget(const Resource& resource, const ObjectKey& key, const std::string& uid) {
  ObjectStore* kind = store(resource, key.first);
  if (kind != nullptr) kind->forget(key, uid);
}

}  // namespace coxswain
