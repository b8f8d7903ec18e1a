// What a pod's attempt came to, from how its workers ended. Pure.
#pragma once

#include <optional>
#include <vector>

namespace coxswain {

struct WorkerEnd {
  int rank = 0;
  int exit_code = 0;  // of the process, or 128 + the signal that killed it
  bool ended_by_agent =
      false;  // killed by a signal that the agent had sent to it because another worker failed
};

// The worker that tells the cause: the first, in the order of `ends`, that failed on its own account: neither
// because it lost a peer (76) nor by the agent's hand. Failing that the first that failed at all. Nothing:
// all ended well.
std::optional<WorkerEnd> cause_of(const std::vector<WorkerEnd>& ends);

}  // namespace coxswain
