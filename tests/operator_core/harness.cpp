#include "tests/operator_core/harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "operator/api/parse.h"

namespace coxswain::testing {

World::World(const std::string& spec) : now(parse_time("2026-01-01T00:00:00Z").value()) {
  Json json = load_yaml(spec, "spec").value().front();
  if (!json.contains("config") && !json.contains("template")) json["config"] = {{"base_model", "/models/m"}};
  if (!json.contains("output")) json["output"] = {{"claimName", "out"}};
  job = parse_training_job(
      {{"metadata", {{"name", "j"}, {"namespace", "n"}, {"uid", "u"}, {"generation", 1}}}, {"spec", json}});
}

Plan World::plan() const {
  Observed observed;
  observed.pods = pods;
  observed.has_service = has_service;
  observed.config_map_attempts = config_maps;
  observed.progress = progress;
  observed.moved = moved;
  observed.heard = heard;
  observed.agents = agents;
  observed.conflicts = conflicts;
  observed.rejections = rejections;
  return reconcile(job, observed, now, settings);
}

void World::apply(const Plan& plan, int writes) {
  if (plan.status) {
    if (writes-- <= 0) return;
    job.status = parse_status(status_to_json(*plan.status));  // what an API server keeps of it
  }
  for (const Action& action : plan.actions) {
    if (writes-- <= 0) return;
    perform(action);
  }
  if (writes < 0) return;
  events.insert(events.end(), plan.events.begin(), plan.events.end());
}

void World::perform(const Action& action) {
  if (const auto* child = std::get_if<CreateChild>(&action)) create(*child);
  if (std::holds_alternative<DeleteJob>(action)) job_deleted = true;
  if (const auto* child = std::get_if<DeleteChild>(&action)) {
    if (child->kind == "Service") has_service = false;
    if (child->kind == "ConfigMap")
      config_maps.erase(std::stoll(child->name.substr(child->name.rfind('-') + 1)));
  }
  const auto* deletion = std::get_if<DeletePod>(&action);
  if (deletion == nullptr) return;
  auto found =
      std::find_if(pods.begin(), pods.end(), [&](const ObservedPod& p) { return p.uid == deletion->uid; });
  if (found == pods.end()) return;
  const bool ended = found->phase == PodPhase::kSucceeded || found->phase == PodPhase::kFailed;
  if (deletion->grace_seconds == 0 || ended) {
    pods.erase(found);
  } else if (!found->terminating()) {
    found->deletion_grace_seconds = job.spec.run_policy.termination_grace_period_seconds;
    found->deletion_time = now + std::chrono::seconds(*found->deletion_grace_seconds);
  }
}

// POST: a name that is taken answers 409, which leaves the world as it is.
void World::create(const CreateChild& create) {
  if (create.kind == "Service") has_service = true;
  if (create.kind == "ConfigMap") config_maps.insert(job.status.attempt);
  if (create.kind != "Pod") return;
  const bool taken =
      std::any_of(pods.begin(), pods.end(), [&](const ObservedPod& p) { return p.name == create.name; });
  if (taken) return;
  Json object = create.object;
  object["metadata"]["uid"] = "pod-" + std::to_string(next_uid_++);
  object["metadata"]["creationTimestamp"] = format_time(now);
  EXPECT_TRUE(is_controlled_by(object, job.metadata.uid));
  pods.push_back(observe_pod(object));
}

Plan World::pass() {
  const Plan made = plan();
  apply(made);
  requeue_after = made.requeue_after;
  return made;
}

void World::settle() {
  for (int i = 0; i < 20; ++i) {
    const Plan made = pass();
    if (!made.status && made.actions.empty()) return;
  }
  ADD_FAILURE() << "the job does not come to rest; phase " << phase();
}

ObservedPod& World::pod(int64_t rank) {
  ObservedPod* found = nullptr;
  for (ObservedPod& candidate : pods) {
    if (candidate.node_rank == rank && (found == nullptr || candidate.attempt > found->attempt))
      found = &candidate;
  }
  if (found == nullptr) throw std::runtime_error("no pod of rank " + std::to_string(rank));
  return *found;
}

void World::run_all() {
  for (ObservedPod& candidate : pods) {
    if (candidate.phase != PodPhase::kPending || candidate.terminating()) continue;
    candidate.phase = PodPhase::kRunning;
    candidate.ready = true;
    candidate.waiting.reset();
  }
}

void World::end(int64_t rank, int64_t exit_code, const std::string& message, const std::string& reason) {
  ObservedPod& ended = pod(rank);
  ended.phase = exit_code == 0 ? PodPhase::kSucceeded : PodPhase::kFailed;
  ended.ready = false;
  ended.termination =
      Termination{exit_code, 0, reason.empty() ? (exit_code == 0 ? "Completed" : "Error") : reason, message,
                  std::chrono::floor<std::chrono::seconds>(now)};
}

void World::vanish(int64_t rank) {
  const std::string uid = pod(rank).uid;
  std::erase_if(pods, [&](const ObservedPod& candidate) { return candidate.uid == uid; });
}

void World::finish_deletions() {
  std::erase_if(pods, [](const ObservedPod& candidate) { return candidate.terminating(); });
}

void World::start() {
  settle();
  run_all();
  settle();
}

std::string World::reason(const char* condition) const {
  const Condition* found = find_condition(job.status, condition);
  return found == nullptr ? "" : found->reason;
}

void World::refuse(const std::string& message, int code, const std::string& name) {
  const int64_t times = rejections.empty() ? 1 : rejections.front().times + 1;
  const bool permanent = code == 400 || code == 422;
  rejections = {{"Pod", name, message, permanent, code, now, times, std::nullopt}};
}

void World::lose_node(int64_t rank) {
  ObservedPod& lost = pod(rank);
  lost.node = "node-" + std::to_string(rank);
  lost.node_seen = ObservedNode{false, std::chrono::floor<std::chrono::seconds>(now), "NodeStatusUnknown",
                                "Kubelet stopped posting node status."};
}

void World::everyone_at(const std::vector<int64_t>& steps) {
  agents.clear();
  for (size_t rank = 0; rank < steps.size(); ++rank) {
    const auto number = static_cast<int64_t>(rank);
    agents.push_back({pod(number).name, number, {{{number, "train", steps[rank]}}}});
  }
}

std::string World::said(const char* condition) const {
  const Condition* found = find_condition(job.status, condition);
  return found == nullptr ? "" : found->message;
}

std::string World::names() const {
  std::vector<std::string> all;
  for (const ObservedPod& p : pods) {
    all.push_back(p.name + "@" + std::to_string(p.attempt) + (p.terminating() ? "!" : ""));
  }
  std::sort(all.begin(), all.end());
  std::string out;
  for (const std::string& name : all) out += (out.empty() ? "" : " ") + name;
  return out;
}

bool World::has_event(const std::string& reason) const {
  return std::any_of(events.begin(), events.end(),
                     [&](const Event& event) { return event.reason == reason; });
}

}  // namespace coxswain::testing
