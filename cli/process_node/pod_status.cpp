#include "cli/process_node/pod_status.h"

#include <algorithm>
#include <cstdio>

#include "operator/api/parse.h"

namespace coxswain {

namespace {

// With milliseconds, which a kubelet doesn't write: here they tell which of two failures in a second was
// first.
std::string precise(TimePoint time) {
  const auto fraction = time.time_since_epoch().count() % 1000;
  char text[8];
  std::snprintf(text, sizeof text, ".%03dZ", static_cast<int>(fraction));
  std::string seconds = format_time(time - Duration(fraction));
  seconds.pop_back();
  return seconds + text;
}

Json state_of(const ContainerRun& run) {
  if (run.finished) {
    Json ended = {
        {"exitCode", run.exit_code}, {"reason", run.reason}, {"finishedAt", precise(*run.finished)}};
    if (run.started) ended["startedAt"] = precise(*run.started);
    if (run.exit_code > 128 && run.exit_code < 192) ended["signal"] = run.exit_code - 128;
    if (!run.message.empty()) ended["message"] = run.message;
    return {{"terminated", ended}};
  }
  if (run.started) return {{"running", {{"startedAt", precise(*run.started)}}}};
  return {{"waiting", {{"reason", run.init ? "PodInitializing" : "ContainerCreating"}}}};
}

std::string phase_of(const std::vector<ContainerRun>& containers) {
  for (const ContainerRun& run : containers) {
    if (run.finished && run.exit_code != 0) return "Failed";
  }
  const ContainerRun& trainer = containers.back();
  return trainer.finished ? "Succeeded" : trainer.started ? "Running" : "Pending";
}

}  // namespace

Json pod_status(const std::vector<ContainerRun>& containers, TimePoint pod_started) {
  const std::string phase = phase_of(containers);
  const bool ready = phase == "Running";
  Json status = {{"phase", phase},
                 {"podIP", "127.0.0.1"},
                 {"podIPs", {{{"ip", "127.0.0.1"}}}},
                 {"hostIP", "127.0.0.1"},
                 {"startTime", format_time(pod_started)},
                 {"initContainerStatuses", Json::array()},
                 {"containerStatuses", Json::array()},
                 {"conditions", Json::array()}};
  for (const char* type : {"PodScheduled", "Initialized", "ContainersReady", "Ready"}) {
    const bool holds = ready || std::string(type) == "PodScheduled";
    status["conditions"].push_back({{"type", type}, {"status", holds ? "True" : "False"}});
  }
  for (const ContainerRun& run : containers) {
    const bool running = run.started && !run.finished;
    status[run.init ? "initContainerStatuses" : "containerStatuses"].push_back(
        {{"name", run.name},
         {"image", run.image},
         {"imageID", ""},
         {"restartCount", 0},
         {"ready", running && !run.init},
         {"started", running},
         {"state", state_of(run)}});
  }
  return status;
}

}  // namespace coxswain
