#include "runtime/launch/attempt_outcome.h"

#include <algorithm>

#include "contract/contract.h"

namespace coxswain {

std::optional<WorkerEnd> cause_of(const std::vector<WorkerEnd>& ends) {
  const auto failed = [](const WorkerEnd& end) { return end.exit_code != 0; };
  const auto on_its_own = [&](const WorkerEnd& end) {
    return failed(end) && !end.ended_by_agent &&
           end.exit_code != static_cast<int>(contract::ExitCode::kLostPeer);
  };
  auto found = std::find_if(ends.begin(), ends.end(), on_its_own);
  if (found == ends.end()) found = std::find_if(ends.begin(), ends.end(), failed);
  return found == ends.end() ? std::nullopt : std::optional<WorkerEnd>(*found);
}

}  // namespace coxswain
