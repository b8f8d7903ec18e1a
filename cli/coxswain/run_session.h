// One `coxswain run`: an API in memory, the real controller, and this machine as the node.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "cli/coxswain/console.h"
#include "cli/coxswain/job_folder.h"
#include "cli/process_node/process_node.h"
#include "contract/result.h"
#include "operator/client/memory_api.h"
#include "operator/controller/controller.h"

namespace coxswain {

struct SessionOptions {
  NodeOptions node;
  bool follow = false;
};

// How often the person has asked the program to stop. Written by signal handlers.
int stop_requests();
void install_stop_handlers();

// Used by the program's only thread.
class RunSession {
 public:
  RunSession(const JobFolder& folder, Console& console, SessionOptions options);

  // Puts the job into the API: anew, or, where `stored` has not finished, as that one with the manifest's
  // spec (422 where the spec changes what may not change).
  ApiResult<Json> begin(const Json& manifest, const std::optional<Json>& stored);

  // Works until the job has finished, is suspended, or has been killed by a second stop request: the exit
  // status.
  int work();

 private:
  enum class State { kGoesOn, kFinished, kSuspended, kKilled };

  State turn();
  // Takes in what became of the job, one change at a time: also what it last was before its time to live was
  // over.
  void note_changes();
  void note(const Json& job);
  void heed_stop_requests();
  void wait(TimePoint until);
  int exit_status(State state) const;

  const JobFolder& folder_;
  Console& console_;
  const Clock clock_ = system_time;
  MemoryApi api_;
  ProcessNode node_;
  LocalProgressReader progress_;
  Controller controller_;
  std::unique_ptr<Watch> changes_;
  Json job_;
  bool deleted_ = false;
  TrainingJobStatus status_;
  int heeded_ = 0;
};

}  // namespace coxswain
