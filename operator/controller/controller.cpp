#include "operator/controller/controller.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "contract/contract.h"
#include "operator/api/parse.h"

namespace coxswain {

namespace {

// Passes in one step(): enough for every job of a large cluster, few enough that a job that keeps waking
// itself cannot hold the thread.
constexpr int kPassesPerStep = 10000;

// A change of only the status, or of what the server notes beside it, is no reason for a pass.
bool same_but_for_status(Json a, Json b) {
  for (Json* object : {&a, &b}) {
    object->erase("status");
    (*object)["metadata"].erase("resourceVersion");
    (*object)["metadata"].erase("managedFields");
  }
  return a == b;
}

std::optional<Json> controller_of(const Json& object) {
  for (const Json& owner : object.value("/metadata/ownerReferences"_json_pointer, Json::array())) {
    if (owner.value("controller", false) && owner.value("kind", "") == contract::kKind) return owner;
  }
  return std::nullopt;
}

WorkQueue::Key key_of(const Json& object) {
  return {object["metadata"].value("namespace", ""), object["metadata"].value("name", "")};
}

}  // namespace

Controller::Controller(ApiClient& api, ProgressReader* progress, Clock clock, ControllerOptions options)
    : api_(api),
      progress_(progress),
      clock_(std::move(clock)),
      options_(std::move(options)),
      jobs_(
          api, resources::kTrainingJobs, options_.watched_namespace, "", clock_,
          [this](const Json& before, const Json& after) { on_job(before, after); }, [this] { wake(); }),
      pods_(
          api, resources::kPods, options_.watched_namespace, contract::kLabelJobName, clock_,
          [this](const Json& before, const Json& after) { on_child(pods_of_, before, after); },
          [this] { wake(); }),
      services_(
          api, resources::kServices, options_.watched_namespace, contract::kLabelJobName, clock_,
          [this](const Json& before, const Json& after) { on_child(services_of_, before, after); },
          [this] { wake(); }),
      config_maps_(
          api, resources::kConfigMaps, options_.watched_namespace, contract::kLabelJobName, clock_,
          [this](const Json& before, const Json& after) { on_child(config_maps_of_, before, after); },
          [this] { wake(); }) {}

void Controller::wake() {
  std::lock_guard lock(mutex_);
  woken_ = true;
  wake_up_.notify_all();
}

void Controller::on_job(const Json& before, const Json& after) {
  const Key key = key_of(after.is_null() ? before : after);
  if (after.is_null()) {
    states_.erase(key);
    queue_.forget(key);
    return;
  }
  if (!before.is_null() && same_but_for_status(before, after)) return;
  // Another job of that name: what was learnt of the old one is not its.
  if (!before.is_null() && before["metadata"].value("uid", "") != after["metadata"].value("uid", "")) {
    states_.erase(key);
  }
  queue_.add(key, clock_());
}

void Controller::on_child(Index& index, const Json& before, const Json& after) {
  for (const Json* object : {&before, &after}) {
    if (object->is_null()) continue;
    const auto owner = controller_of(*object);
    if (!owner) continue;
    const std::string uid = owner->value("uid", "");
    if (object == &after) {
      index[uid].insert(key_of(after));
    } else {
      index[uid].erase(key_of(before));
      if (index[uid].empty()) index.erase(uid);
    }
    queue_.add({(*object)["metadata"].value("namespace", ""), owner->value("name", "")}, clock_());
  }
}

TimePoint Controller::step() {
  TimePoint next = TimePoint::max();
  for (int passes = 0; passes < kPassesPerStep; ++passes) {
    next = TimePoint::max();
    for (Reflector* reflector : {&jobs_, &pods_, &services_, &config_maps_}) {
      next = std::min(next, reflector->poll());
    }
    // A decision on half a picture would take pods that are only not yet listed for lost ones.
    if (!jobs_.filled() || !pods_.filled() || !services_.filled() || !config_maps_.filled()) return next;
    const auto key = queue_.pop(clock_());
    if (!key) break;
    pass(*key);
  }
  return std::min(next, queue_.next_due());
}

void Controller::run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    const TimePoint next = step();
    std::unique_lock lock(mutex_);
    if (next == TimePoint::max()) {
      wake_up_.wait(lock, stop, [this] { return woken_; });
    } else {
      wake_up_.wait_for(lock, stop, std::max(Duration(0), next - clock_()), [this] { return woken_; });
    }
    woken_ = false;
  }
}

std::vector<Json> Controller::children(const Reflector& reflector, const Index& index,
                                       const std::string& uid) const {
  std::vector<Json> found;
  const auto it = index.find(uid);
  if (it == index.end()) return found;
  for (const auto& [ns, name] : it->second) {
    if (const Json* object = reflector.find(ns, name)) found.push_back(*object);
  }
  return found;
}

Observed Controller::look(const TrainingJob& job, JobState& state, TimePoint now) {
  if (now >= state.retry_creation) {
    state.conflicts.clear();
    state.rejections.clear();
  }
  const std::string& uid = job.metadata.uid;
  Observed observed = observe(job, children(pods_, pods_of_, uid), children(services_, services_of_, uid),
                              children(config_maps_, config_maps_of_, uid));
  observed.conflicts = state.conflicts;
  observed.rejections = state.rejections;
  ask_progress(job, state, now);
  if (state.progress_attempt == job.status.attempt) observed.progress = state.progress;
  return observed;
}

void Controller::ask_progress(const TrainingJob& job, JobState& state, TimePoint now) {
  if (progress_ == nullptr || !job.spec.has_config()) return;
  if (state.progress_attempt == job.status.attempt && now < state.progress_asked + options_.progress_interval)
    return;
  for (const Json& pod : children(pods_, pods_of_, job.metadata.uid)) {
    const ObservedPod seen = observe_pod(pod);
    if (seen.node_rank != 0 || seen.attempt != job.status.attempt || seen.phase != PodPhase::kRunning)
      continue;
    if (state.progress_attempt != job.status.attempt) state.progress.reset();
    state.progress_attempt = job.status.attempt;
    state.progress_asked = now;
    const auto answer = progress_->read(pod);
    if (answer) {
      if (auto progress = parse_progress(*answer, job.status.attempt)) state.progress = std::move(progress);
    }
    queue_.add({job.metadata.namespace_name, job.metadata.name}, now + options_.progress_interval);
  }
}

void Controller::pass(const Key& key) {
  const Json* found = jobs_.find(key.first, key.second);
  if (found == nullptr) return;
  const Json object = *found;
  const TrainingJob job = parse_training_job(object);
  JobState& state = states_[key];
  const TimePoint now = clock_();
  const Observed observed = look(job, state, now);
  const Plan plan = reconcile(job, observed, now, options_.settings);
  if (plan.status && !write_status(key, state, object, *plan.status)) return;
  const bool carried_out = write_children(key, state, job, plan);
  for (const Event& event : plan.events) publish(api_, job, event, now);
  if (!carried_out) return;
  if (state.conflicts.empty() && state.rejections.empty()) {
    state.failures = 0;
  } else {
    queue_.add(key, state.retry_creation);
  }
  if (plan.requeue_after) queue_.add(key, now + *plan.requeue_after);
}

bool Controller::write_status(const Key& key, JobState& state, const Json& object,
                              const TrainingJobStatus& status) {
  Json next = object;
  next["status"] = status_to_json(status);
  if (next == object) return true;
  auto written = api_.update_status(resources::kTrainingJobs, key.first, next, {});
  if (written) {
    jobs_.remember(*written);
    return true;
  }
  if (written.error().not_found()) return false;  // deleted meanwhile: the watch will say so
  if (written.error().conflict()) {
    // Whoever wrote meanwhile may have changed what this pass decided on: look at everything again.
    auto fresh = api_.get(resources::kTrainingJobs, key.first, key.second);
    if (fresh) {
      jobs_.remember(*fresh);
      queue_.add(key, clock_());
      return false;
    }
  }
  spdlog::warn("{}/{}: status could not be written: {}", key.first, key.second, written.error().message);
  queue_.add(key, clock_() + next_backoff(state));
  return false;
}

bool Controller::write_children(const Key& key, JobState& state, const TrainingJob& job, const Plan& plan) {
  return std::ranges::all_of(
      plan.actions, [&](const Action& action) { return settle(key, state, carry_out(api_, job, action)); });
}

bool Controller::settle(const Key& key, JobState& state, const ActionResult& result) {
  if (const auto* done = std::get_if<ActionDone>(&result)) {
    Reflector* reflector = reflector_of(done->resource);
    if (!done->object.is_null() && reflector != nullptr) reflector->remember(done->object);
    return true;
  }
  if (std::holds_alternative<ActionWaits>(result)) {
    // The watch tells when it is gone; the timer is for a pod whose end was missed.
    queue_.add(key, clock_() + options_.settings.force_delete_after);
    return true;
  }
  if (const auto* conflict = std::get_if<ActionConflicts>(&result)) {
    state.conflicts = {conflict->conflict};
    state.retry_creation = clock_() + options_.settings.name_conflict_retry;
    queue_.add(key, clock_());
    return false;
  }
  if (const auto* rejected = std::get_if<ActionRejected>(&result)) {
    state.rejections = {rejected->rejection};
    const Duration asked = rejected->retry_after.value_or(Duration(0));
    state.retry_creation = clock_() + std::max(asked, next_backoff(state));
    queue_.add(key, clock_());  // so that the status says what was refused
    return false;
  }
  queue_.add(key, clock_() + next_backoff(state));
  const auto& unanswered = std::get<ActionUnanswered>(result);
  spdlog::warn("{}/{}: a write got no answer: {}", key.first, key.second, unanswered.error.message);
  return false;
}

Duration Controller::next_backoff(JobState& state) {
  return std::min(options_.retry_max, options_.retry_base * (1 << std::min(state.failures++, 16)));
}

Reflector* Controller::reflector_of(const Resource& resource) {
  for (auto [kind, reflector] : {std::pair{&resources::kPods, &pods_},
                                 {&resources::kServices, &services_},
                                 {&resources::kConfigMaps, &config_maps_}}) {
    if (*kind == resource) return reflector;
  }
  return nullptr;
}

}  // namespace coxswain
