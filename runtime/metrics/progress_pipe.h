// The worker's side of the progress contract (contract/contract.h, "Progress"): JSON lines to the agent.
#pragma once

#include <optional>
#include <string>

#include "contract/contract.h"
#include "runtime/metrics/step_record.h"

namespace coxswain {

enum class Phase { kLoad, kRendezvous, kTrain, kSave, kDone };

// Never fails and never holds training up: a line that the pipe has no room for, or that nobody reads any
// more, is dropped (an error line waits up to a second for room). Lines are at most PIPE_BUF bytes, so that
// they are written whole; a longer error message is cut. Thread-safe. Doesn't own the descriptor. Sets
// SIGPIPE to be ignored in this process when it has a descriptor, and makes the descriptor non-blocking and
// close-on-exec.
class ProgressPipe {
 public:
  explicit ProgressPipe(std::optional<int> fd);

  void phase(Phase phase) const;
  void step(const StepRecord& record, int64_t total_steps) const;
  void checkpoint(int64_t step) const;
  void error(contract::ExitCode exit_code, const std::string& message) const;

 private:
  bool write_line(const std::string& line) const;

  std::optional<int> fd_;
};

}  // namespace coxswain
