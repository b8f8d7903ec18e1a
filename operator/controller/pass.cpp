// One pass over a job.
#include <algorithm>
#include <exception>
#include <span>
#include <utility>

#include "operator/api/parse.h"
#include "operator/controller/controller.h"
#include "operator/reconcile/bring_up.h"
#include "operator/reconcile/node_loss.h"

namespace coxswain {

namespace {

bool creates(const Plan& plan) {
  return std::ranges::any_of(
      plan.actions, [](const Action& action) { return std::holds_alternative<CreateChild>(action); });
}

bool creates_pods(const Plan& plan) {
  return std::ranges::any_of(plan.actions, [](const Action& action) {
    const auto* create = std::get_if<CreateChild>(&action);
    return create != nullptr && create->kind == "Pod";
  });
}

// An older one of the name may have yet to go: then that was not the last creation.
bool has_all_pods(const TrainingJob& job, const Objects& pods) {
  const auto of_attempt = [&](const auto& pod) { return observe_pod(*pod).attempt == job.status.attempt; };
  return std::ranges::count_if(pods, of_attempt) >= job.spec.nodes;
}

JobRef ref(const TrainingJob& job) {
  return {job.metadata.namespace_name, job.metadata.name, job.status.attempt};
}

WorkQueue::Key key_of(const TrainingJob& job) {
  return {job.metadata.namespace_name, job.metadata.name};
}

}  // namespace

// One job that can't be worked on is no reason for the others to stop.
void Controller::try_pass(const Key& key) {
  const auto begin = std::chrono::steady_clock::now();
  PassResult result = PassResult::kError;
  try {
    result = pass(key);
  } catch (const std::exception& error) {
    log_job(spdlog::level::err, {key.first, key.second, std::nullopt}, "the pass failed: {}", error.what());
    queue_.add_rate_limited(key);
  }
  observer_.pass_ended(result, std::chrono::steady_clock::now() - begin);
}

PassResult Controller::pass(const Key& key) {
  const ObjectStore::Object object = view_.job(key);
  if (object == nullptr) {
    forget(key);
    return PassResult::kSuccess;
  }
  TrainingJob job = parse_training_job(*object);
  const std::shared_ptr<JobState> state = state_of(key, job.metadata.uid);
  const TimePoint now = clock_();
  const Observed observed = look(job, *state, now);
  const Plan plan = reconcile(job, observed, now, options_.settings);
  if (plan.status) {
    if (const auto ends = write_status(job, *object, *plan.status)) return *ends;
    job.status = *plan.status;
  }
  const auto refused = write_children(*state, job, plan);
  if (plan.requeue_after) queue_.add_at(key, now + *plan.requeue_after);
  // What no status remembers is told once it is done: the next pass plans it again.
  if (!refused || plan.status) {
    for (const Event& event : plan.events) events_.publish(job, event, now);
  }
  if (refused) return *refused;
  if (creates_pods(plan) && has_all_pods(job, view_.pods(key.first, job.metadata.uid))) {
    observer_.pods_created(job, clock_());
  }
  if (creates(plan) && !state->rejections.empty()) {
    state->rejections.clear();
    queue_.add(key);  // so that the status no longer says what was refused
  }
  if (state->conflicts.empty()) {
    queue_.forget(key);
  } else {
    queue_.add_at(key, state->retry_creation);
  }
  return plan.requeue_after ? PassResult::kRequeueAfter : PassResult::kSuccess;
}

Observed Controller::look(const TrainingJob& job, JobState& state, TimePoint now) {
  if (now >= state.retry_creation) state.conflicts.clear();
  // What another spec was refused says nothing of this one, nor what a gang was that has failed since.
  const RestartsStatus& restarts = job.status.restarts;
  const Start start = {job.metadata.generation, restarts.counted + restarts.disruptions};
  if (std::exchange(state.start, start) != start) state.rejections.clear();
  const std::string& uid = job.metadata.uid;
  const std::string& ns = job.metadata.namespace_name;
  const ClusterView::Objects pods = view_.pods(ns, uid);
  Observed observed = observe(job, pods, view_.services(ns, uid), view_.config_maps(ns, uid));
  look_at_nodes(observed, {ns, job.metadata.name});
  observed.conflicts = state.conflicts;
  observed.rejections = state.rejections;
  state.progress.tell(job.status.attempt, observed);
  ask_soon(job, state);
  return observed;
}

void Controller::look_at_nodes(Observed& observed, const Key& key) {
  see_nodes(observed, [&](const std::string& name) -> std::optional<ObservedNode> {
    const ObjectStore::Object node = view_.node(name);
    if (node == nullptr) return std::nullopt;
    return observe_node(*node);
  });
  if (std::ranges::none_of(observed.pods, is_on_unready_node)) return;
  const auto since = longest_ready_since(view_.nodes());
  count_unready_from(since, observed);
  if (!since) queue_.add_at(key, clock_() + options_.settings.progress_interval);
}

void Controller::ask_soon(const TrainingJob& job, const JobState& state) {
  if (progress_ == nullptr || !job.spec.has_config() || job.status.nodes.active == 0) return;
  asks_.add_at(key_of(job), state.progress.due(job.status.attempt, options_.settings.progress_interval));
}

void Controller::try_ask(const Key& key) {
  try {
    if (ask_agents(key)) queue_.add(key);
  } catch (const std::exception& error) {
    log_job(spdlog::level::err, {key.first, key.second, std::nullopt}, "its agents could not be asked: {}",
            error.what());
    asks_.add_at(key, clock_() + options_.settings.progress_interval);
  }
}

bool Controller::ask_agents(const Key& key) {
  const ObjectStore::Object object = view_.job(key);
  if (object == nullptr) return false;
  const TrainingJob job = parse_training_job(*object);
  const auto state = state_of(key, job.metadata.uid);
  return state->progress.ask(*progress_, parallel_writes_, job, view_.pods(key.first, job.metadata.uid),
                             clock_());
}

std::optional<PassResult> Controller::write_status(const TrainingJob& job, const Json& object,
                                                   const TrainingJobStatus& status) {
  const Key key = key_of(job);
  Json next = object;
  next["status"] = status_to_json(status);
  if (next == object) return std::nullopt;
  auto written = api_.update_status(resources::kTrainingJobs, key.first, next, {});
  if (written) {
    view_.remember(resources::kTrainingJobs, std::move(*written));
    return std::nullopt;
  }
  if (written.error().not_found()) return PassResult::kSuccess;  // deleted meanwhile: the watch will say so
  if (written.error().conflict()) {
    // Whoever wrote meanwhile may have changed what this pass decided on: look at everything again.
    auto fresh = api_.get(resources::kTrainingJobs, key.first, key.second);
    if (fresh && metadata::resource_version(*fresh) != metadata::resource_version(object)) {
      view_.remember(resources::kTrainingJobs, std::move(*fresh));
      queue_.add(key);
      return PassResult::kRequeue;
    }
  }
  warn_job(ref(job), "status could not be written: {}", written.error().message);
  queue_.add_rate_limited(key);
  return PassResult::kError;
}

// A first one alone, then twice as many with each batch: what would be refused is refused once, not for every
// pod.
std::optional<PassResult> Controller::write_children(JobState& state, const TrainingJob& job,
                                                     const Plan& plan) {
  const std::span<const Action> actions(plan.actions);
  size_t batch = 1;
  for (size_t begin = 0; begin < actions.size();) {
    const size_t count = std::min(alike(actions.subspan(begin)), batch);
    const auto results = carry_out_together(api_, job, actions.subspan(begin, count), writers_);
    // What was done is taken note of also where something else of the batch was refused.
    const ActionResult* failed = nullptr;
    for (const ActionResult& result : results) {
      if (succeeded(result)) {
        settle(state, job, result);
      } else if (failed == nullptr && !std::holds_alternative<ActionNotBegun>(result)) {
        failed = &result;
      }
    }
    if (failed != nullptr) return settle(state, job, *failed);
    begin += count;
    batch *= 2;
  }
  return std::nullopt;
}

std::optional<PassResult> Controller::settle(JobState& state, const TrainingJob& job,
                                             const ActionResult& result) {
  const Key key = key_of(job);
  if (const auto* done = std::get_if<ActionDone>(&result)) {
    if (!done->object.is_null()) view_.remember(done->resource, done->object);
    return std::nullopt;
  }
  if (const auto* gone = std::get_if<ActionGone>(&result)) {
    view_.forget(gone->resource, {key.first, gone->name}, gone->uid);
    return std::nullopt;
  }
  if (std::holds_alternative<ActionWaits>(result)) {
    // The watch tells when it is gone; the timer is for a pod whose end was missed.
    queue_.add_at(key, clock_() + options_.settings.force_delete_after);
    return std::nullopt;
  }
  if (const auto* conflict = std::get_if<ActionConflicts>(&result)) {
    state.conflicts = {conflict->conflict};
    state.retry_creation = clock_() + name_retry(conflict->conflict, options_.settings);
    queue_.add(key);
    return PassResult::kRequeue;
  }
  if (const auto* rejected = std::get_if<ActionRejected>(&result)) {
    Rejection rejection = rejected->rejection;
    rejection.time = clock_();
    if (!state.rejections.empty()) rejection.times = state.rejections.front().times + 1;
    state.rejections = {std::move(rejection)};
    queue_.add(key);  // so that the status says what was refused
    return PassResult::kRequeue;
  }
  queue_.add_rate_limited(key);
  const ApiError& error = std::get<ActionUnanswered>(result).error;
  if (error.code == 0) {
    warn_job(ref(job), "a write got no answer: {}", error.message);
  } else {
    warn_job(ref(job), "a write was refused with {}: {}", error.code, error.message);
  }
  return PassResult::kError;
}

}  // namespace coxswain
