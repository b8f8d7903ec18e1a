#include "runtime/launch/progress_board.h"

#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace coxswain {

namespace {

struct StepNumber {
  const char* name;
  const char* help;
};

constexpr StepNumber kStepNumbers[] = {
    {"epoch", "Epochs done, as a fraction."},
    {"loss", "Loss of the last optimizer step."},
    {"grad_norm", "Global norm of the gradients before clipping, at the last step."},
    {"learning_rate", "Learning rate of the last step."},
    {"tokens_per_second", "Tokens of all ranks a second, at the last step."},
};

std::optional<int64_t> integer_in(const nlohmann::json& event, const char* name) {
  const auto found = event.find(name);
  if (found == event.end() || !found->is_number_integer()) return std::nullopt;
  // A larger one than fits would come out negative.
  if (found->is_number_unsigned() && found->get<uint64_t>() > std::numeric_limits<int64_t>::max())
    return std::nullopt;
  return found->get<int64_t>();
}

std::string text_in(const nlohmann::json& event, const char* name) {
  const auto found = event.find(name);
  return found != event.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

ProgressBoard::ProgressBoard(Pod pod, std::vector<int> ranks) : pod_(std::move(pod)) {
  for (const int rank : ranks) workers_[rank];
}

void ProgressBoard::update(int rank, std::string_view line, double now) {
  const nlohmann::json event = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!event.is_object()) return;
  const std::string kind = text_in(event, "event");
  const std::lock_guard lock(mutex_);
  const auto found = workers_.find(rank);
  if (found == workers_.end()) return;
  Worker& worker = found->second;
  if (kind == "phase") {
    worker.phase = text_in(event, "phase");
  } else if (kind == "step") {
    worker.step = integer_in(event, "step");
    worker.total_steps = integer_in(event, "total_steps");
    for (const StepNumber& number : kStepNumbers)
      if (const auto value = event.find(number.name); value != event.end())
        worker.numbers[number.name] =
            value->is_number() ? value->get<double>() : std::numeric_limits<double>::quiet_NaN();
  } else if (kind == "checkpoint") {
    if (const std::optional<int64_t> step = integer_in(event, "step"))
      last_checkpoint_step_ = std::max(*step, last_checkpoint_step_.value_or(*step));
  } else if (kind == "error") {
    worker.error = text_in(event, "message");
  } else {
    return;
  }
  worker.updated_at = now;
}

std::optional<std::string> ProgressBoard::error_of(int rank) const {
  const std::lock_guard lock(mutex_);
  const auto found = workers_.find(rank);
  return found == workers_.end() ? std::nullopt : found->second.error;
}

std::string ProgressBoard::progress_json() const {
  const std::lock_guard lock(mutex_);
  nlohmann::ordered_json json{{"job", pod_.job}, {"attempt", pod_.attempt}, {"node_rank", pod_.node_rank}};
  json["workers"] = nlohmann::ordered_json::array();
  for (const auto& [rank, worker] : workers_) {
    nlohmann::ordered_json entry{{"rank", rank}, {"phase", worker.phase}};
    if (worker.step) entry["step"] = *worker.step;
    if (worker.total_steps) entry["total_steps"] = *worker.total_steps;
    for (const StepNumber& number : kStepNumbers)
      if (const auto value = worker.numbers.find(number.name); value != worker.numbers.end())
        entry[number.name] = value->second;
    if (worker.error) entry["error"] = *worker.error;
    entry["updated_at"] = worker.updated_at;
    json["workers"].push_back(std::move(entry));
  }
  json["last_checkpoint_step"] = nullptr;
  if (last_checkpoint_step_) json["last_checkpoint_step"] = *last_checkpoint_step_;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string ProgressBoard::metrics_text() const {
  const std::lock_guard lock(mutex_);
  prometheus::Registry registry;
  const auto gauge = [&](const std::string& name, const std::string& help) -> auto& {
    return prometheus::BuildGauge().Name("coxswain_" + name).Help(help).Register(registry);
  };
  gauge("attempt", "Restarts of the job's pods so far.").Add({}).Set(pod_.attempt);
  gauge("node_rank", "Number of this pod in its job.").Add({}).Set(pod_.node_rank);
  if (last_checkpoint_step_)
    gauge("last_checkpoint_step", "Step of the last checkpoint.")
        .Add({})
        .Set(static_cast<double>(*last_checkpoint_step_));
  for (const auto& [rank, worker] : workers_) {
    const std::map<std::string, std::string> labels{{"rank", std::to_string(rank)}};
    if (worker.step)
      gauge("step", "Optimizer steps done.").Add(labels).Set(static_cast<double>(*worker.step));
    if (worker.total_steps)
      gauge("total_steps", "Optimizer steps of the whole training.")
          .Add(labels)
          .Set(static_cast<double>(*worker.total_steps));
    for (const StepNumber& number : kStepNumbers)
      if (const auto value = worker.numbers.find(number.name); value != worker.numbers.end())
        gauge(number.name, number.help).Add(labels).Set(value->second);
    if (worker.updated_at > 0)
      gauge("last_report_timestamp_seconds", "When the worker last reported.")
          .Add(labels)
          .Set(worker.updated_at);
  }
  return prometheus::TextSerializer().Serialize(registry.Collect());
}

}  // namespace coxswain
