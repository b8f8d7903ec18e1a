// SIGTERM and SIGINT ask training to save and stop at the next step boundary; they never interrupt a step.
// Before the first step there is nothing to save: then they end the process at once, with ExitCode::kStopped.
#pragma once

namespace coxswain {

void install_stop_handler();
// From here on; when all ranks have met and their state is loaded.
void stop_at_step_boundaries();
bool stop_requested();

}  // namespace coxswain
