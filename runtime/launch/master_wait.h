// Waiting until rank 0 can be reached: first that its name resolves, then that its port answers.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "contract/result.h"

namespace coxswain {

struct MasterWait {
  std::string address;
  int port = 0;
  std::chrono::milliseconds timeout{0};
  // Called about once a second between attempts and sleeps meanwhile; true: give up (the pod is being
  // stopped).
  std::function<bool(std::chrono::milliseconds)> sleep_or_stop;
  // Told what is waited for: at once, every half minute, and when that changes.
  std::function<void(const std::string&)> say;
};

// kRendezvousTimeout after `timeout`, with what was waited for and the last error; kStopped when told to give
// up.
Result<void> wait_for_master(const MasterWait& wait);

}  // namespace coxswain
