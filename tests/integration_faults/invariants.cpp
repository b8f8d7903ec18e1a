#include "tests/integration_faults/invariants.h"

#include <algorithm>
#include <utility>

namespace coxswain::testing {

namespace {

using Json = nlohmann::json;

constexpr char kAttempt[] = "training.coxswain.dev/attempt";
constexpr char kRank[] = "training.coxswain.dev/node-rank";

Json at(const Json& object, const char* pointer, Json otherwise = Json()) {
  const Json::json_pointer path(pointer);
  return object.contains(path) ? object.at(path) : otherwise;
}

std::string label(const Json& pod, const char* name) {
  const Json labels = at(pod, "/metadata/labels", Json::object());
  return labels.value(name, "");
}

std::string owner_uid(const Json& pod) {
  for (const Json& owner : at(pod, "/metadata/ownerReferences", Json::array())) {
    if (owner.value("kind", "") == "TrainingJob") return owner.value("uid", "");
  }
  return "";
}

Invariants::Pod pod_of(const Json& object) {
  Invariants::Pod pod;
  pod.name = at(object, "/metadata/name", "");
  pod.uid = at(object, "/metadata/uid", "");
  pod.job_uid = owner_uid(object);
  pod.rank = label(object, kRank);
  pod.attempt = pod.job_uid.empty() ? -1 : std::stoll(label(object, kAttempt));
  const std::string phase = at(object, "/status/phase", "");
  pod.running = phase == "Running";
  pod.ended = phase == "Succeeded" || phase == "Failed";
  pod.being_deleted = !at(object, "/metadata/deletionTimestamp").is_null();
  return pod;
}

const Json* condition(const Json& job, const std::string& type) {
  static const Json::json_pointer kConditions("/status/conditions");
  if (!job.contains(kConditions)) return nullptr;
  for (const Json& one : job.at(kConditions)) {
    if (one.value("type", "") == type && one.value("status", "") == "True") return &one;
  }
  return nullptr;
}

}  // namespace

int64_t Invariants::Job::attempt() const {
  return at(object, "/status/attempt", 0);
}
bool Invariants::Job::suspend() const {
  return at(object, "/spec/suspend", false);
}
bool Invariants::Job::has(const std::string& type) const {
  return condition(object, type) != nullptr;
}
int64_t Invariants::Job::restarts(const std::string& kind) const {
  return at(object, ("/status/restarts/" + kind).c_str(), 0);
}

void Invariants::take(const Change& change) {
  std::lock_guard lock(mutex_);
  ++changes_;
  const size_t name_at = change.key.rfind('/');
  const size_t namespace_at = change.key.rfind('/', name_at - 1);
  const Key key{change.key.substr(namespace_at + 1, name_at - namespace_at - 1),
                change.key.substr(name_at + 1)};
  if (change.key.starts_with("/registry/pods/")) {
    take_pod(key, change);
  } else {
    take_job(key, change);
  }
}

// --- Jobs

void Invariants::take_job(const Key& key, const Change& change) {
  if (change.after.is_null()) {
    jobs_.erase(key);
    return;
  }
  const Job before{std::exchange(jobs_[key].object, change.after), {}};
  const Job& now = jobs_[key];
  const int64_t attempts = now.attempt() - before.attempt();
  if (attempts < 0 || attempts > 1) violated(change, "status.attempt went on by " + std::to_string(attempts));
  for (const char* kind : {"counted", "disruptions", "hangs"}) {
    const int64_t more = now.restarts(kind) - before.restarts(kind);
    if (more < 0 || more > std::max<int64_t>(attempts, 0)) {
      violated(change, std::string("status.restarts.") + kind + " went on by " + std::to_string(more));
    }
  }
  for (const char* type : {"Complete", "Failed"}) {
    const Json* ended = condition(before.object, type);
    const Json* still = condition(now.object, type);
    if (ended != nullptr && (still == nullptr || *still != *ended)) {
      violated(change, std::string("the condition ") + type + " changed after the end");
    }
  }
  if (before.finished() && attempts != 0) violated(change, "an attempt after the end");
}

const Invariants::Job* Invariants::job_of(const std::string& uid) const {
  for (const auto& [_, job] : jobs_) {
    if (at(job.object, "/metadata/uid", "") == uid) return &job;
  }
  return nullptr;
}

// --- Pods

void Invariants::take_pod(const Key& key, const Change& change) {
  const auto known = pods_.find(key);
  if (change.after.is_null()) {
    if (known != pods_.end()) {
      if (!known->second.being_deleted) deletion_began(known->second, change);
      pods_.erase(known);
    }
    return;
  }
  const Pod pod = pod_of(change.after);
  if (pod.job_uid.empty()) return;
  if (known == pods_.end()) created(pod, change);
  if (known != pods_.end() && !known->second.being_deleted && pod.being_deleted) deletion_began(pod, change);
  pods_[key] = pod;
  check_live(pod, change);
}

void Invariants::created(const Pod& pod, const Change& change) {
  for (const auto& [_, other] : pods_) {
    if (other.job_uid == pod.job_uid && other.attempt != pod.attempt) {
      violated(change, "created in attempt " + std::to_string(pod.attempt) + " while " + other.name +
                           " of attempt " + std::to_string(other.attempt) + " was there");
    }
  }
  const Job* job = job_of(pod.job_uid);
  if (job == nullptr) return violated(change, "created for a job that is gone");
  if (job->finished()) violated(change, "created after the end of its job");
  if (job->attempt() != pod.attempt) {
    violated(change, "created in attempt " + std::to_string(pod.attempt) + " while the status said " +
                         std::to_string(job->attempt()));
  }
}

void Invariants::check_live(const Pod& pod, const Change& change) {
  const auto same = [&](const auto& entry) {
    const Pod& other = entry.second;
    return other.job_uid == pod.job_uid && other.rank == pod.rank && !other.ended;
  };
  if (!pod.ended && std::ranges::count_if(pods_, same) > 1) violated(change, "a second live pod of its rank");
}

void Invariants::deletion_began(const Pod& pod, const Change& change) {
  const Job* job = job_of(pod.job_uid);
  if (job == nullptr || excused_.contains(pod.uid)) return;
  if (pod.attempt >= job->attempt() && !job->finished()) {
    violated(change, "deleted in attempt " + std::to_string(pod.attempt) + ", which the status still ran");
  }
}

void Invariants::violated(const Change& change, const std::string& what) {
  violations_.push_back("revision " + std::to_string(change.revision) + " " + change.key + ": " + what);
}

// --- For the test

void Invariants::excuse_deletion(const std::string& uid) {
  std::lock_guard lock(mutex_);
  excused_.insert(uid);
}

std::map<std::string, Invariants::Job> Invariants::jobs(const std::string& ns) const {
  std::lock_guard lock(mutex_);
  std::map<std::string, Job> result;
  std::map<std::string, std::vector<Pod>> pods;
  for (const auto& [key, pod] : pods_) {
    if (key.first == ns) pods[pod.job_uid].push_back(pod);
  }
  for (const auto& [key, job] : jobs_) {
    if (key.first != ns) continue;
    result[key.second] = {job.object, pods[at(job.object, "/metadata/uid", "")]};
  }
  return result;
}

std::vector<std::string> Invariants::violations() const {
  std::lock_guard lock(mutex_);
  return violations_;
}

int64_t Invariants::changes() const {
  std::lock_guard lock(mutex_);
  return changes_;
}

}  // namespace coxswain::testing
