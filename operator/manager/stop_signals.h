// SIGTERM and SIGINT as a request to stop.
#pragma once

#include <stop_token>
#include <thread>

namespace coxswain {

// Made before any other thread: it blocks both signals in the thread that makes it, and so in those that it
// starts, and takes them in a thread of its own. The first one requests a stop; the second ends the program
// at once with 128 + its number. SIGPIPE is ignored.
class StopSignals {
 public:
  StopSignals();

  std::stop_token token() const { return stop_.get_token(); }
  // For whoever else finds that the program has to end.
  void request_stop() { stop_.request_stop(); }

 private:
  void wait(std::stop_token ended);

  std::stop_source stop_;
  std::jthread thread_;
};

}  // namespace coxswain
