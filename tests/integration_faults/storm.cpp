#include "tests/integration_faults/storm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "operator/api/parse.h"
#include "operator/client/clock.h"
#include "operator/client/metadata.h"
#include "tests/client/objects.h"

namespace coxswain::testing {

namespace {

using coxswain::resources::kPods;
using coxswain::resources::kTrainingJobs;

// Each doubles the wait before the next restart, from five seconds on.
constexpr int64_t kCountedAtMost = 2;

// False: somebody else was quicker, and nothing was done. Throws where nobody knows.
bool was_done(const ApiResult<Json>& result) {
  if (result) return true;
  const ApiError& error = result.error();
  if (error.code == 404 || error.code == 409) return false;
  throw std::runtime_error("the storm's own request failed: " + std::to_string(error.code) + " " +
                           error.message);
}

Json end_of(const Json& status, int exit_code) {
  Json ended = status;
  ended["phase"] = exit_code == 0 ? "Succeeded" : "Failed";
  for (Json& container : ended["containerStatuses"]) {
    container["ready"] = false;
    container["state"] = {{"terminated",
                           {{"exitCode", exit_code},
                            {"reason", exit_code == 0 ? "Completed" : "Error"},
                            {"startedAt", container["state"]["running"]["startedAt"]},
                            {"finishedAt", format_time(system_time())}}}};
  }
  return ended;
}

}  // namespace

Storm::Storm(ControlPlane& plane, Invariants& invariants, StormOptions options)
    : plane_(plane),
      invariants_(invariants),
      ns_(plane.new_namespace("storm")),
      random_(options.seed),
      nodes_(plane, {.namespace_name = ns_}) {
  for (int i = 0; i < options.jobs; ++i) {
    const std::string name = "job-" + std::to_string(i);
    jobs_[name].doomed = i % 4 == 3;
    submit(name, 1 + i % 3, i % 5 == 0);
  }
}

Storm::~Storm() {
  plane_.delete_namespace(ns_);
}

void Storm::submit(const std::string& name, int nodes, bool with_config) {
  jobs_.try_emplace(name);
  Json job = a_training_job(name, nodes);
  job["spec"]["runPolicy"] = {{"backoffLimit", kCountedAtMost}, {"terminationGracePeriodSeconds", 5}};
  if (with_config) {
    job["spec"].erase("template");
    job["spec"]["config"] = {
        {"task", "llm"}, {"base_model", "/m"}, {"project_name", "p"}, {"data", {{"path", "/d"}}}};
  }
  if (!was_done(plane_.api().create(kTrainingJobs, ns_, job, {}))) throw std::runtime_error("no " + name);
}

// --- What happens

void Storm::tick() {
  const auto all = invariants_.jobs(ns_);
  for (auto& [name, deeds] : jobs_) {
    const auto found = all.find(name);
    if (found == all.end()) continue;
    const Invariants::Job& job = found->second;
    if (job.suspend()) {
      if (job.has("Suspended") && pick(5) == 0) set_suspend(name, false);
    } else if (winding_down_ && !deeds.doomed) {
      finish(job, deeds);
    } else if (is_steady(job, deeds) && (winding_down_ || pick(5) == 0)) {
      end_attempt(name, job, deeds);
    }
  }
}

// All of it runs, the status says so, and nothing was done to this attempt yet: so nothing is going on that a
// deed could be mixed up with.
bool Storm::is_steady(const Invariants::Job& job, const Deeds& deeds) const {
  const auto runs = [&](const Invariants::Pod& pod) {
    return pod.running && !pod.being_deleted && pod.attempt == job.attempt();
  };
  const size_t nodes = job.object["spec"].value("nodes", 1);
  return job.has("Running") && job.attempt() > deeds.ended_attempt && job.pods.size() == nodes &&
         std::ranges::all_of(job.pods, runs);
}

void Storm::end_attempt(const std::string& name, const Invariants::Job& job, Deeds& deeds) {
  const Invariants::Pod& pod = job.pods[static_cast<size_t>(pick(static_cast<int>(job.pods.size())))];
  const bool may_fail = winding_down_ || deeds.failures < kCountedAtMost;
  bool done = false;
  switch (winding_down_ ? 0 : pick(5)) {
    case 0:
      if (!may_fail) return;
      done = fail(pod, 1);
      if (done && deeds.failures == kCountedAtMost) deeds.failed = true;
      if (done && !deeds.failed) ++deeds.failures;
      break;
    case 1:
      if ((done = fail(pod, 137, "Evicted"))) ++deeds.disruptions;
      break;
    case 2:
    case 3:
      if ((done = remove(pod))) ++deeds.disruptions;
      break;
    default:
      if ((done = set_suspend(name, true))) ++deeds.suspensions;
  }
  if (done) deeds.ended_attempt = job.attempt();
}

void Storm::finish(const Invariants::Job& job, Deeds& deeds) {
  if (is_steady(job, deeds)) deeds.finishing = deeds.ended_attempt = job.attempt();
  if (deeds.finishing != job.attempt() || job.finished()) return;
  for (const Invariants::Pod& pod : job.pods) {
    if (pod.running && !pod.being_deleted) fail(pod, 0);
  }
}

// --- By whose hand

bool Storm::fail(const Invariants::Pod& pod, int exit_code, const std::string& reason) {
  auto object = plane_.api().get(kPods, ns_, pod.name);
  if (!was_done(object) || metadata::uid(*object) != pod.uid) return false;
  // With its resourceVersion: a pod of the next attempt may have the name by now.
  (*object)["status"] = end_of((*object)["status"], exit_code);
  if (!reason.empty()) (*object)["status"].merge_patch({{"reason", reason}, {"message", "low on memory"}});
  return was_done(plane_.api().update_status(kPods, ns_, *object, {}));
}

bool Storm::remove(const Invariants::Pod& pod) {
  invariants_.excuse_deletion(pod.uid);
  DeleteOptions options;
  options.uid = pod.uid;
  return was_done(plane_.api().remove(kPods, ns_, pod.name, options));
}

bool Storm::set_suspend(const std::string& name, bool suspend) {
  return was_done(plane_.api().merge_patch(kTrainingJobs, ns_, name, {{"spec", {{"suspend", suspend}}}}, {}));
}

// --- The end

bool Storm::over() const {
  const auto all = invariants_.jobs(ns_);
  return std::ranges::all_of(jobs_, [&](const auto& entry) {
    const auto found = all.find(entry.first);
    return found != all.end() && found->second.finished();
  });
}

bool Storm::run_to_the_end(std::chrono::seconds bound) {
  wind_down();
  return eventually(
      [&] {
        tick();
        return over();
      },
      bound);
}

void Storm::expect_all_is_accounted_for() const {
  const auto all = invariants_.jobs(ns_);
  for (const auto& [name, deeds] : jobs_) {
    SCOPED_TRACE(name);
    const auto found = all.find(name);
    ASSERT_NE(found, all.end());
    const Invariants::Job& job = found->second;
    EXPECT_EQ(job.has("Failed"), deeds.failed) << job.object["status"].dump();
    EXPECT_EQ(job.has("Complete"), !deeds.failed) << job.object["status"].dump();
    EXPECT_EQ(job.restarts("counted"), deeds.failures);
    EXPECT_EQ(job.restarts("disruptions"), deeds.disruptions);
    EXPECT_EQ(job.restarts("hangs"), 0);
    EXPECT_EQ(job.attempt(), deeds.failures + deeds.disruptions + deeds.suspensions);
  }
}

int64_t Storm::attempts_ended() const {
  int64_t sum = 0;
  for (const auto& [_, deeds] : jobs_) sum += deeds.failures + deeds.disruptions + deeds.suspensions;
  return sum;
}

std::string Storm::summary() const {
  Deeds sum;
  for (const auto& [_, deeds] : jobs_) {
    sum.failures += deeds.failures;
    sum.disruptions += deeds.disruptions;
    sum.suspensions += deeds.suspensions;
  }
  const auto all = invariants_.jobs(ns_);
  const auto in = [&](const char* condition) {
    return std::to_string(
        std::ranges::count_if(all, [&](const auto& job) { return job.second.has(condition); }));
  };
  return std::to_string(sum.failures) + " failures, " + std::to_string(sum.disruptions) + " disruptions, " +
         std::to_string(sum.suspensions) + " suspensions; " + in("Complete") + " Complete, " + in("Failed") +
         " Failed";
}

bool Storm::all_run() const {
  const auto all = invariants_.jobs(ns_);
  return std::ranges::all_of(jobs_, [&](const auto& entry) {
    const auto found = all.find(entry.first);
    return found != all.end() && is_steady(found->second, entry.second);
  });
}

}  // namespace coxswain::testing
