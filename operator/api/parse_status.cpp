// Typed status → JSON of the status subresource.
#include "operator/api/parse.h"

namespace coxswain {
namespace {

void put(Json& out, const char* key, const std::string& value) {
  if (!value.empty()) out[key] = value;
}

void put(Json& out, const char* key, const std::optional<int64_t>& value) {
  if (value) out[key] = *value;
}

void put(Json& out, const char* key, const std::optional<TimePoint>& value) {
  if (value) out[key] = format_time(*value);
}

Json to_json(const Condition& condition) {
  return {{"type", condition.type},
          {"status", condition.status ? "True" : "False"},
          {"reason", condition.reason},
          {"message", condition.message},
          {"observedGeneration", condition.observed_generation},
          {"lastTransitionTime", format_time(condition.last_transition_time)}};
}

Json to_json(const LastFailure& failure) {
  Json out = {{"time", format_time(failure.time)}, {"attempt", failure.attempt}, {"cause", failure.cause}};
  put(out, "pod", failure.pod);
  put(out, "nodeRank", failure.node_rank);
  put(out, "exitCode", failure.exit_code);
  put(out, "message", failure.message);
  return out;
}

Json to_json(const TrainingStatus& training) {
  Json out = {{"step", training.step}};
  put(out, "totalSteps", training.total_steps);
  put(out, "epoch", training.epoch);
  put(out, "loss", training.loss);
  put(out, "tokensPerSecond", training.tokens_per_second);
  put(out, "estimatedCompletionTime", training.estimated_completion_time);
  put(out, "lastProgressTime", training.last_progress_time);
  put(out, "lastCheckpointStep", training.last_checkpoint_step);
  return out;
}

}  // namespace

Json status_to_json(const TrainingJobStatus& status) {
  Json out = {{"observedGeneration", status.observed_generation},
              {"phase", to_string(status.phase)},
              {"attempt", status.attempt}};
  out["nodes"] = {{"desired", status.nodes.desired},
                  {"active", status.nodes.active},
                  {"ready", status.nodes.ready},
                  {"succeeded", status.nodes.succeeded},
                  {"failed", status.nodes.failed}};
  out["restarts"] = {{"counted", status.restarts.counted},
                     {"disruptions", status.restarts.disruptions},
                     {"hangs", status.restarts.hangs}};
  out["conditions"] = Json::array();
  for (const Condition& condition : status.conditions) out["conditions"].push_back(to_json(condition));
  put(out, "runtimeImage", status.runtime_image);
  put(out, "startTime", status.start_time);
  put(out, "startupTime", status.startup_time);
  put(out, "completionTime", status.completion_time);
  if (status.last_failure) out["lastFailure"] = to_json(*status.last_failure);
  if (status.training) out["training"] = to_json(*status.training);
  return out;
}

}  // namespace coxswain
