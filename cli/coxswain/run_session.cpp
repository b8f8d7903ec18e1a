#include "cli/coxswain/run_session.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <atomic>

#include "cli/coxswain/commands.h"
#include "cli/coxswain/manifest.h"
#include "operator/api/parse.h"

namespace coxswain {

namespace {

// The end of a process is found by asking, so this is how late we may notice it.
constexpr int kLongestWaitMs = 50;

std::atomic<int> stop_request_count{0};

ControllerOptions controller_options() {
  ControllerOptions options;
  // A cluster's patience is too long for somebody who watches, and there is no other node to wait for.
  options.watch = in_process_watch_settings();
  options.settings.progress_interval = std::chrono::seconds(1);
  options.settings.settle = std::chrono::milliseconds(500);
  options.settings.settle_collateral = std::chrono::seconds(5);
  // There is no node, registry or scheduler here that would want time to recover.
  options.settings.backoff_base = std::chrono::milliseconds(200);
  options.settings.backoff_max = std::chrono::seconds(1);
  options.retry_base = std::chrono::milliseconds(100);
  return options;
}

std::string failure_advice(const std::filesystem::path& state) {
  return "the full output of every pod is in " + (state / "logs").string();
}

}  // namespace

int stop_requests() {
  return stop_request_count.load();
}

void install_stop_handlers() {
  struct sigaction action {};
  action.sa_handler = [](int) { stop_request_count.fetch_add(1); };
  sigemptyset(&action.sa_mask);
  for (int s : {SIGINT, SIGTERM, SIGHUP}) sigaction(s, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

RunSession::RunSession(const JobFolder& folder, Console& console, SessionOptions options)
    : folder_(folder),
      console_(console),
      api_(clock_),
      node_(api_, clock_, options.node,
            [this, follow = options.follow](const std::string& pod, int node_rank, const std::string& line) {
              if (follow || node_rank == 0) console_.log(pod, line);
            }),
      progress_(node_),
      controller_(api_, &progress_, clock_, controller_options()) {}

ApiResult<Json> RunSession::begin(const Json& manifest, const std::optional<Json>& stored) {
  const std::string ns = manifest["metadata"].value("namespace", "");
  auto changes = api_.watch(resources::kTrainingJobs, ns, {});
  if (!changes) return tl::unexpected(changes.error());
  changes_ = std::move(*changes);
  if (!stored) {
    auto created = api_.create(resources::kTrainingJobs, ns, manifest, {});
    if (created) job_ = *created;
    return created;
  }
  // Nothing of it has run since we stopped, however that came about: so it may be changed as a suspended job
  // may.
  Json asleep = *stored;
  asleep["spec"]["suspend"] = true;
  api_.restore(resources::kTrainingJobs, asleep);
  auto current = api_.get(resources::kTrainingJobs, ns, manifest["metadata"].value("name", ""));
  if (!current) return current;
  Json next = *current;
  next["spec"] = manifest["spec"];
  auto updated = api_.update(resources::kTrainingJobs, ns, next, {});
  if (updated) job_ = *updated;
  return updated;
}

int RunSession::work() {
  note_changes();
  for (;;) {
    const State state = turn();
    if (state != State::kGoesOn) return exit_status(state);
  }
}

RunSession::State RunSession::turn() {
  heed_stop_requests();
  node_.step();
  const TimePoint next = controller_.step();
  node_.step();
  note_changes();
  if (heeded_ > 1 && !node_.busy()) return State::kKilled;
  if (is_finished(status_)) {
    // With cleanPodPolicy None a cluster would let them run on; here the job's end is the program's end.
    if (parse_training_job(job_).spec.run_policy.clean_pod_policy == CleanPodPolicy::kNone) node_.kill_all();
    if (!node_.busy()) return State::kFinished;
  }
  if (deleted_ && !node_.busy()) return State::kFinished;
  const bool suspended = job_["spec"].value("suspend", false) && has_condition(status_, kConditionSuspended);
  if (suspended && !node_.busy()) return State::kSuspended;
  wait(next);
  return State::kGoesOn;
}

void RunSession::note_changes() {
  while (auto change = changes_->next({})) {
    deleted_ = deleted_ || change->type == WatchEventType::kDeleted;
    if (change->type != WatchEventType::kBookmark) note(change->object);
  }
  console_.show(status_, clock_());
}

void RunSession::note(const Json& job) {
  job_ = job;
  status_ = parse_training_job(job_).status;
  if (auto saved = folder_.save(job_); !saved) console_.say(saved.error().message);
  console_.show(status_, clock_());
}

void RunSession::heed_stop_requests() {
  const int asked = stop_requests();
  if (asked == heeded_) return;
  if (heeded_ == 0) {
    console_.say("stopping: the pods save a checkpoint and end (Ctrl-C again kills them)");
    api_.merge_patch(resources::kTrainingJobs, job_["metadata"].value("namespace", ""),
                     job_["metadata"].value("name", ""), {{"spec", {{"suspend", true}}}}, {});
  }
  if (asked > 1) {
    console_.say("killing the pods");
    node_.kill_all();
  }
  heeded_ = asked;
}

void RunSession::wait(TimePoint until) {
  std::vector<pollfd> descriptors;
  for (int fd : node_.output_fds()) descriptors.push_back({fd, POLLIN, 0});
  const auto left = std::max<int64_t>(0, (until - clock_()).count());
  const int timeout = static_cast<int>(std::min<int64_t>(left, kLongestWaitMs));
  poll(descriptors.data(), descriptors.size(), timeout);
}

int RunSession::exit_status(State state) const {
  if (state == State::kKilled) {
    console_.say("killed; running the same command again goes on from the last checkpoint that was saved");
    return kExitKilled;
  }
  if (state == State::kSuspended) {
    console_.say(heeded_ > 0 ? "suspended; running the same command again goes on from the checkpoint"
                             : "suspended by its own spec.suspend: run it with --set suspend=false to go on");
    return static_cast<int>(contract::ExitCode::kStopped);
  }
  if (has_condition(status_, kConditionComplete)) return 0;
  console_.say(failure_advice(folder_.path()));
  const bool has_code = status_.last_failure && status_.last_failure->exit_code.value_or(0) != 0;
  return has_code ? static_cast<int>(*status_.last_failure->exit_code) : kExitFailed;
}

}  // namespace coxswain
