#include "tests/integration/fake_nodes.h"

#include "operator/client/metadata.h"

namespace coxswain::testing {

namespace {

using coxswain::resources::kPods;
using Later = std::optional<TimePoint>;

constexpr Later kWhenItChanges = std::nullopt;

// Somebody else was quicker, or the pod is another one by now: what the watch brings next tells.
bool overtaken(const ApiError& error) {
  return error.code == 404 || error.code == 409;
}

ApiResult<Later> settled(const ApiResult<Json>& written) {
  if (!written && !overtaken(written.error())) return tl::unexpected(written.error());
  return kWhenItChanges;
}

std::string waiting_reason(const Json& pod) {
  for (const Json& status : pod["status"].value("containerStatuses", Json::array())) {
    const auto path = "/state/waiting/reason"_json_pointer;
    if (status.contains(path)) return status.at(path);
  }
  return "";
}

bool is_unschedulable(const Json& pod, const std::string& message) {
  for (const Json& condition : pod["status"].value("conditions", Json::array())) {
    if (condition["type"] == "PodScheduled") return condition.value("message", "") == message;
  }
  return false;
}

}  // namespace

FakeNodes::FakeNodes(ControlPlane& plane, FakeNodesOptions options)
    : FakeNodes(
          plane.api(),
          [&plane](const std::string& ns, const std::string& pod, const std::string& node) {
            return plane.bind_pod(ns, pod, node);
          },
          std::move(options)) {}

FakeNodes::FakeNodes(ApiClient& api, BindPod bind, FakeNodesOptions options)
    : api_(api),
      bind_(std::move(bind)),
      options_(std::move(options)),
      fate_(options_.fate),
      queue_(system_time,
             {.backoff_base = std::chrono::milliseconds(50), .backoff_max = std::chrono::seconds(1)}) {
  for (int i = 0; i < options_.nodes; ++i) {
    nodes_.push_back("fake-node-" + std::to_string(i));
    if (const auto added = kubelet("").add_node(nodes_.back()); !added) {
      throw std::runtime_error("node " + nodes_.back() + ": " + added.error().message);
    }
  }
  pods_ = std::make_unique<Informer>(
      api_,
      InformerOptions{.resource = kPods,
                      .namespace_name = options_.namespace_name,
                      .label_selector = options_.label_selector},
      system_time,
      [this](const Json&, const Json& after) {
        if (!after.is_null()) queue_.add({metadata::namespace_name(after), metadata::name(after)});
      },
      std::function<void()>());
  threads_.emplace_back([this](std::stop_token stop) { pods_->run(stop); });
  for (int i = 0; i < options_.workers; ++i) threads_.emplace_back([this] { work(); });
}

FakeNodes::~FakeNodes() {
  queue_.shut_down();
  queue_.drop_waiting();
  threads_.clear();
  for (const std::string& node : nodes_) kubelet("").remove_node(node);
}

void FakeNodes::work() {
  while (const auto key = queue_.get()) {
    const auto later = handle(*key);
    if (!later) {
      queue_.add_rate_limited(*key);
    } else {
      queue_.forget(*key);
      if (*later) queue_.add_at(*key, **later);
    }
    queue_.done(*key);
  }
}

ApiResult<Later> FakeNodes::handle(const Key& key) {
  const ObjectStore::Object found = pods_->store().find({key.first, key.second});
  if (found == nullptr) return kWhenItChanges;
  const Json& pod = *found;
  const std::string node = pod["spec"].value("nodeName", "");
  const std::string phase = pod["status"].value("phase", "Pending");
  Fate fate;
  {
    std::lock_guard lock(mutex_);
    if (silent_.contains(node)) return kWhenItChanges;
    fate = fate_(pod);
  }
  if (metadata::being_deleted(pod)) return node.empty() ? kWhenItChanges : stop(key, pod, fate);
  if (phase == "Succeeded" || phase == "Failed") return kWhenItChanges;
  if (node.empty()) return schedule(key, pod, fate);
  return phase == "Pending" ? start(key, pod, fate) : run_on(key, pod, fate);
}

ApiResult<Later> FakeNodes::schedule(const Key& key, const Json& pod, const Fate& fate) {
  const std::string node = next_node();
  const std::string sentence = !fate.unschedulable.empty() ? fate.unschedulable
                               : node.empty()              ? "0/" + std::to_string(nodes_.size()) +
                                                    " nodes are available: the others are not ready."
                                              : "";
  if (sentence.empty()) return settled(kubelet(key.first).bind(key.second, node));
  if (is_unschedulable(pod, sentence)) return kWhenItChanges;
  return settled(kubelet(key.first).unschedulable(key.second, sentence));
}

ApiResult<Later> FakeNodes::start(const Key& key, const Json& pod, const Fate& fate) {
  if (fate.waits.empty()) return settled(kubelet(key.first).run(key.second));
  if (waiting_reason(pod) == fate.waits) return kWhenItChanges;
  return settled(kubelet(key.first).hold_up(key.second, fate.waits, fate.waits_message));
}

ApiResult<Later> FakeNodes::run_on(const Key& key, const Json& pod, const Fate& fate) {
  if (!fate.runs_for) return kWhenItChanges;
  const TimePoint end = since(metadata::uid(pod), "runs") + *fate.runs_for;
  if (system_time() < end) return end;
  return settled(kubelet(key.first).end(key.second, fate.exit_code, fate.message));
}

ApiResult<Later> FakeNodes::stop(const Key& key, const Json& pod, const Fate& fate) {
  const TimePoint end = since(metadata::uid(pod), "stops") + fate.stops_after;
  if (system_time() < end) return end;
  FakeKubelet kubelet = this->kubelet(key.first);
  const std::string phase = pod["status"].value("phase", "");
  if (fate.stop_exit_code && phase != "Failed" && phase != "Succeeded") {
    const auto ended = kubelet.end(key.second, *fate.stop_exit_code);
    if (!ended && !overtaken(ended.error())) return tl::unexpected(ended.error());
  }
  return settled(kubelet.confirm_deletion(key.second, metadata::uid(pod)));
}

TimePoint FakeNodes::since(const std::string& uid, const std::string& what) {
  std::lock_guard lock(mutex_);
  return since_.try_emplace(uid + "/" + what, system_time()).first->second;
}

std::string FakeNodes::next_node() {
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const std::string& node = nodes_[turn_++ % nodes_.size()];
    if (!silent_.contains(node)) return node;
  }
  return "";
}

void FakeNodes::look_at_all() {
  for (const ObjectStore::Object& pod : pods_->store().all()) {
    queue_.add({metadata::namespace_name(*pod), metadata::name(*pod)});
  }
}

void FakeNodes::set_fate(std::function<Fate(const Json& pod)> fate) {
  {
    std::lock_guard lock(mutex_);
    fate_ = std::move(fate);
  }
  look_at_all();
}

void FakeNodes::silence(const std::string& node) {
  std::lock_guard lock(mutex_);
  silent_.insert(node);
}

void FakeNodes::lose(const std::string& node) {
  silence(node);
  kubelet("").set_node_ready(node, "Unknown");
}

void FakeNodes::bring_back(const std::string& node) {
  {
    std::lock_guard lock(mutex_);
    silent_.erase(node);
  }
  kubelet("").set_node_ready(node, "True");
  look_at_all();
}

}  // namespace coxswain::testing
