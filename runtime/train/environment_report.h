// What this process runs on, for a person who has to explain why a run is slow or fails.
#pragma once

#include <string>

namespace coxswain {

// Several lines: system, CPU and quota, memory and limit, LibTorch and how it was built, threads, network
// interfaces, devices.
std::string environment_report();

// One line, for the start of a run.
std::string short_environment_report();

}  // namespace coxswain
