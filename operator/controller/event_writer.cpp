#include "operator/controller/event_writer.h"

#include <fmt/chrono.h>

#include <functional>
#include <string_view>
#include <utility>

#include "contract/contract.h"
#include "operator/reconcile/reasons.h"
#include "operator/reconcile/shortened.h"

namespace coxswain {

namespace {

constexpr size_t kNoteMaxBytes = 1024;

// Of two operators' events with the same words only one is kept, so that a restart makes no second one.
std::string name_of(const TrainingJob& job, const Event& event) {
  const size_t hash = std::hash<std::string>{}(job.metadata.uid + "/" + event.reason + "/" + event.message);
  return fmt::format("{}.{:016x}", job.metadata.name, hash);
}

// Words of a pod's program may be no UTF-8; what replaces them is longer, so first that, then the cut.
std::string note_of(const std::string& message) {
  const std::string text = Json(message).dump(-1, ' ', false, Json::error_handler_t::replace);
  return shortened(Json::parse(text).get<std::string>(), kNoteMaxBytes);
}

}  // namespace

std::string format_micro_time(TimePoint time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}000Z",
                     fmt::gmtime(static_cast<std::time_t>(seconds.time_since_epoch().count())),
                     (time - seconds).count());
}

std::string action_of(const std::string& reason) {
  static const std::map<std::string, std::string, std::less<>> actions = {
      {kEventStarted, "Start"},  {kEventResumed, "Resume"},       {kEventSuspended, "Suspend"},
      {kEventRunning, "Start"},  {kEventRestarting, "Restart"},   {kEventCompleted, "Finish"},
      {kEventFailed, "Finish"},  {kEventOverridden, "Render"},    {kEventOutputNotKept, "Render"},
      {kEventDeleted, "Delete"}, {kEventGangReleased, "Release"},
  };
  const auto found = actions.find(reason);
  return found == actions.end() ? "Reconcile" : found->second;
}

EventWriter::EventWriter(ApiClient& api, EventWriterOptions options)
    : api_(api), options_(std::move(options)) {}

Json EventWriter::object_of(const TrainingJob& job, const Event& event, TimePoint now) const {
  const ObjectMeta& meta = job.metadata;
  return {{"metadata", {{"name", name_of(job, event)}, {"namespace", meta.namespace_name}}},
          {"regarding",
           {{"apiVersion", contract::kApiVersion},
            {"kind", contract::kKind},
            {"namespace", meta.namespace_name},
            {"name", meta.name},
            {"uid", meta.uid}}},
          {"type", event.type == EventType::kWarning ? "Warning" : "Normal"},
          {"reason", event.reason},
          {"action", action_of(event.reason)},
          {"note", note_of(event.message)},
          {"reportingController", options_.controller},
          {"reportingInstance", shortened(options_.instance, 128)},
          {"eventTime", format_micro_time(now)}};
}

void EventWriter::publish(const TrainingJob& job, const Event& event, TimePoint now) {
  Waiting waiting{{job.metadata.namespace_name, job.metadata.name, job.status.attempt},
                  name_of(job, event),
                  object_of(job, event, now),
                  now};
  if (options_.logged) {
    const bool warns = event.type == EventType::kWarning;
    log_job(warns ? spdlog::level::warn : spdlog::level::info, waiting.job, "{}: {}", event.reason,
            event.message);
  }
  {
    std::lock_guard lock(mutex_);
    if (waiting_.size() >= options_.waiting_max) {
      waiting_.pop_front();
      ++dropped_;
    }
    waiting_.push_back(std::move(waiting));
  }
  changed_.notify_one();
}

std::optional<EventWriter::Waiting> EventWriter::next() {
  std::lock_guard lock(mutex_);
  if (const size_t dropped = std::exchange(dropped_, 0); dropped > 0) {
    spdlog::warn("{} events were dropped: the API server takes them too slowly", dropped);
  }
  if (waiting_.empty()) return std::nullopt;
  Waiting first = std::move(waiting_.front());
  waiting_.pop_front();
  return first;
}

void EventWriter::flush() {
  while (const auto waiting = next()) write(*waiting);
}

void EventWriter::run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, stop, [this] { return !waiting_.empty(); });
    }
    if (stop.stop_requested()) break;
    if (const auto waiting = next()) write(*waiting);
  }
  const auto deadline = std::chrono::steady_clock::now() + options_.drain_limit;
  while (std::chrono::steady_clock::now() < deadline) {
    const auto waiting = next();
    if (!waiting) return;
    write(*waiting);
  }
}

ApiResult<Json> EventWriter::create(const Waiting& waiting) {
  return api_.create(resources::kEvents, waiting.job.namespace_name, waiting.object, {});
}

ApiResult<Json> EventWriter::count(const Waiting& waiting, int64_t count) {
  const Json series = {{"series", {{"count", count}, {"lastObservedTime", format_micro_time(waiting.time)}}}};
  return api_.merge_patch(resources::kEvents, waiting.job.namespace_name, waiting.name, series, {});
}

void EventWriter::write(const Waiting& waiting) {
  forget_old(waiting.time);
  const std::string key = waiting.job.namespace_name + "/" + waiting.name;
  const auto known = written_.find(key);
  int64_t times = known == written_.end() ? 1 : known->second.count + 1;
  // Not found: the server has let it go meanwhile.
  auto answer = times > 1 ? count(waiting, times) : create(waiting);
  if (!answer && times > 1 && answer.error().not_found()) {
    times = 1;
    answer = create(waiting);
  }
  if (!answer && times == 1 && answer.error().already_exists()) {
    // Reads it with the right to patch alone: the operator needs none to read events.
    answer =
        api_.merge_patch(resources::kEvents, waiting.job.namespace_name, waiting.name, Json::object(), {});
    if (answer) {
      times = answer->value("/series/count"_json_pointer, int64_t{1}) + 1;
      answer = count(waiting, times);
    }
  }
  if (answer) {
    written_[key] = {times, waiting.time};
  } else {
    warn_job(waiting.job, "event {} could not be written: {}", waiting.object.value("reason", ""),
             answer.error().message);
  }
}

void EventWriter::forget_old(TimePoint now) {
  std::erase_if(written_,
                [&](const auto& entry) { return entry.second.time + options_.series_window < now; });
}

}  // namespace coxswain
