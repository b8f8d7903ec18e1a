// SIGTERM and SIGINT ask training to save and stop at the next step boundary; they never interrupt a step.
#pragma once

namespace coxswain {

void install_stop_handler();
bool stop_requested();

}  // namespace coxswain
