#include "tests/operator_field/simulated_cluster.h"

#include <algorithm>
#include <stdexcept>

#include "cli/process_node/pod_status.h"
#include "operator/api/parse.h"
#include "tests/client/objects.h"

namespace coxswain::testing {

using namespace resources;

namespace {

constexpr Duration kNodeMonitorGrace = std::chrono::seconds(40);

bool has_ended(const Json& pod) {
  const std::string phase = pod.at("status").value("phase", "");
  return phase == "Succeeded" || phase == "Failed";
}

std::string node_name(const Json& pod) {
  return pod.at("spec").value("nodeName", "");
}

}  // namespace

std::optional<Json> FakeAgents::read(const Json& pod) {
  ++reads;
  const auto found = answers.find(pod["metadata"]["name"]);
  if (found == answers.end()) return std::nullopt;
  return found->second;
}

void FakeAgents::at(const std::string& pod, int64_t attempt, int64_t rank, const std::string& phase,
                    std::optional<int64_t> step) {
  Json worker = {{"rank", rank}, {"phase", phase}, {"loss", 2.5}, {"tokens_per_second", 10.0}};
  if (step) worker["step"] = *step;
  answers[pod] = {{"attempt", attempt},
                  {"node_rank", rank},
                  {"workers", Json::array({worker})},
                  {"last_checkpoint_step", nullptr}};
}

SimulatedCluster::SimulatedCluster(int nodes) {
  for (int i = 0; i < nodes; ++i) {
    const std::string name = "node-" + std::to_string(i);
    nodes_[name].since = now;
    write_node(name, nodes_[name]);
  }
  restart_operator();
}

void SimulatedCluster::restart_operator() {
  controller_.reset();
  faulty = std::make_unique<FaultyApi>(api, [this](const ApiCall& call) { return admission(call); });
  ControllerOptions options;
  options.watch = in_process_watch_settings();
  options.watch_nodes = true;
  controller_ = std::make_unique<Controller>(*faulty, &agents, clock, options);
}

std::optional<ApiFault> SimulatedCluster::admission(const ApiCall& call) {
  if (script) {
    if (auto fault = script(call)) return fault;
  }
  if (!quota_ || call.verb != Verb::kCreate || call.plural != "pods") return std::nullopt;
  const auto all = api.list(kPods, call.ns, {})->items;
  const auto used = std::ranges::count_if(all, [](const Json& pod) { return !has_ended(pod); });
  if (used < *quota_ || api.get(kPods, call.ns, call.name)) return std::nullopt;
  return ApiFault{
      {403, "Forbidden",
       "pods \"" + call.name + "\" is forbidden: exceeded quota: gpus, requested: pods=1, used: pods=" +
           std::to_string(used) + ", limited: pods=" + std::to_string(*quota_),
       std::nullopt},
      false};
}

// --- Time

TimePoint SimulatedCluster::settle() {
  TimePoint next;
  for (int i = 0; i < 100; ++i) {
    next = controller_->step();
    const int before = changes_;
    step_nodes();
    step_pods();
    if (changes_ == before && next > now) break;
  }
  for (const auto& [_, node] : nodes_) {
    if (!node.told) next = std::min(next, node.since);
  }
  return next;
}

// To the next moment at which something is due, by whole seconds.
void SimulatedCluster::advance(TimePoint end) {
  const TimePoint next = std::max(now + std::chrono::seconds(1), settle());
  now = std::min(end, next);
}

void SimulatedCluster::pass_time(Duration time) {
  const TimePoint end = now + time;
  while (now < end) advance(end);
  settle();
}

bool SimulatedCluster::until(const std::function<bool()>& holds, Duration limit) {
  const TimePoint end = now + limit;
  settle();
  while (!holds() && now < end) {
    advance(end);
    settle();
  }
  return holds();
}

// --- Jobs

ApiResult<Json> SimulatedCluster::submit(const std::string& name, int nodes, Json spec_patch,
                                         Json metadata_patch) {
  Json job = a_training_job(name, nodes);
  job["spec"].merge_patch(spec_patch);
  job["metadata"].merge_patch(metadata_patch);
  auto created = api.create(kTrainingJobs, kNs, job, {});
  if (!created) return created;
  // Jitter goes by the UID: with the same one, the same seed is the same storm.
  (*created)["metadata"]["uid"] = "uid-" + name + "-" + std::to_string(submitted_++);
  api.restore(kTrainingJobs, *created);
  return api.get(kTrainingJobs, kNs, name);
}

TrainingJobStatus SimulatedCluster::status(const std::string& job) {
  const auto object = api.get(kTrainingJobs, kNs, job);
  return object ? parse_training_job(*object).status : TrainingJobStatus();
}

std::string SimulatedCluster::said(const char* condition, const std::string& job) {
  const TrainingJobStatus seen = status(job);
  const Condition* found = find_condition(seen, condition);
  return found == nullptr ? "" : found->message;
}

std::string SimulatedCluster::reason(const char* condition, const std::string& job) {
  const TrainingJobStatus seen = status(job);
  const Condition* found = find_condition(seen, condition);
  return found == nullptr ? "" : found->reason;
}

bool SimulatedCluster::has_event(const std::string& reason, const std::string& words) {
  const auto events = api.list(kEvents, kNs, {})->items;
  return std::ranges::any_of(events, [&](const Json& event) {
    return event.value("reason", "") == reason && event.dump().find(words) != std::string::npos;
  });
}

std::vector<Json> SimulatedCluster::pods(const std::string& job) {
  ListOptions options;
  options.label_selector = std::string(contract::kLabelJobName) + "=" + job;
  return api.list(kPods, kNs, options)->items;
}

Json SimulatedCluster::pod(const std::string& name) {
  const auto found = api.get(kPods, kNs, name);
  if (!found) throw std::runtime_error("no pod " + name);
  return *found;
}

std::string SimulatedCluster::node_of(const std::string& name) {
  return node_name(pod(name));
}

// --- What happens out there

void SimulatedCluster::end(const std::string& name, int exit_code, const std::string& message) {
  Json ended = pod(name);
  ContainerRun run{"trainer", "image", false, now, now, exit_code, exit_code == 0 ? "Completed" : "Error",
                   message};
  ended["status"] = pod_status({run}, now);
  api.update_status(kPods, kNs, ended, {});
}

void SimulatedCluster::end_all(const std::string& job, int exit_code) {
  for (const Json& one : pods(job)) end(one["metadata"]["name"], exit_code);
}

void SimulatedCluster::set_pod_status(const std::string& name, const Json& merge_patch) {
  Json changed = pod(name);
  changed["status"].merge_patch(merge_patch);
  api.update_status(kPods, kNs, changed, {});
}

void SimulatedCluster::lose_node(const std::string& node) {
  nodes_[node] = {true, now + kNodeMonitorGrace, false};
}

void SimulatedCluster::bring_back(const std::string& node) {
  if (!nodes_[node].lost) return;
  nodes_[node] = {false, now, false};
}

void SimulatedCluster::hold_up(const std::string& name, const std::string& reason,
                               const std::string& message) {
  if (reason.empty()) {
    held_up_.erase(name);
  } else {
    held_up_[name] = {{"reason", reason}, {"message", message}};
  }
}

int SimulatedCluster::count(Verb verb, const std::string& plural) {
  int n = 0;
  for (const ApiCall& call : faulty->calls())
    n += call.verb == verb && (plural.empty() || call.plural == plural);
  return n;
}

// --- Scheduler, kubelets, node controller

void SimulatedCluster::write_node(const std::string& name, const Node& node) {
  const Json condition = {
      {"type", "Ready"},
      {"status", node.lost ? "Unknown" : "True"},
      {"reason", node.lost ? "NodeStatusUnknown" : "KubeletReady"},
      {"message", node.lost ? "Kubelet stopped posting node status." : "kubelet is posting ready status"},
      {"lastTransitionTime", format_time(node.since)}};
  api.restore(kNodes, {{"apiVersion", "v1"},
                       {"kind", "Node"},
                       {"metadata", {{"name", name}, {"uid", "uid-" + name}}},
                       {"status", {{"conditions", Json::array({condition})}}}});
}

void SimulatedCluster::step_nodes() {
  for (auto& [name, node] : nodes_) {
    if (node.told || now < node.since) continue;
    write_node(name, node);
    node.told = true;
    ++changes_;
  }
}

void SimulatedCluster::schedule(const Json& pod) {
  const std::string name = pod["metadata"]["name"];
  std::map<std::string, int> load;
  for (const auto& [node, state] : nodes_) {
    if (!state.lost) load[node] = 0;
  }
  const std::vector<Json> pods = api.list(kPods, "", {})->items;
  for (const Json& other : pods) {
    if (load.contains(node_name(other))) ++load[node_name(other)];
  }
  if (unschedulable.contains(name) || load.empty()) {
    if (pod["status"].contains("conditions")) return;
    Json waiting = pod;
    waiting["status"]["conditions"] = {
        {{"type", "PodScheduled"},
         {"status", "False"},
         {"reason", "Unschedulable"},
         {"message", "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."}}};
    api.update_status(kPods, pod["metadata"]["namespace"], waiting, {});
    ++changes_;
    return;
  }
  const auto least = std::ranges::min_element(load, {}, [](const auto& entry) { return entry.second; });
  api.bind_pod(pod["metadata"]["namespace"], name, least->first);
  ++changes_;
}

void SimulatedCluster::start(Json pod) {
  const auto held = held_up_.find(pod["metadata"]["name"]);
  Json next;
  if (held == held_up_.end()) {
    next = pod_status({ContainerRun{"trainer", "image", false, now, std::nullopt, 0, "", ""}}, now);
  } else {
    next = {{"phase", "Pending"},
            {"containerStatuses", {{{"name", "trainer"}, {"state", {{"waiting", held->second}}}}}}};
  }
  if (pod["status"] == next) return;
  pod["status"] = std::move(next);
  ++changes_;
  api.update_status(kPods, pod["metadata"]["namespace"], pod, {});
}

void SimulatedCluster::step_pods() {
  const std::vector<Json> pods = api.list(kPods, "", {})->items;
  for (const Json& pod : pods) {
    const std::string node = node_name(pod);
    if (nodes_.contains(node) && nodes_.at(node).lost) continue;
    if (pod["metadata"].contains("deletionTimestamp")) {
      DeleteOptions at_once;
      at_once.grace_period_seconds = 0;
      api.remove(kPods, pod["metadata"]["namespace"], pod["metadata"]["name"], at_once);
      ++changes_;
    } else if (pod["status"].value("phase", "") == "Pending") {
      if (node.empty()) {
        schedule(pod);
      } else {
        start(pod);
      }
    }
  }
}

}  // namespace coxswain::testing
