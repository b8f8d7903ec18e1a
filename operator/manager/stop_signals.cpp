#include "operator/manager/stop_signals.h"

#include <pthread.h>
#include <signal.h>
#include <spdlog/spdlog.h>

#include <cstdlib>

namespace coxswain {

namespace {

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

}  // namespace

StopSignals::StopSignals() {
  signal(SIGPIPE, SIG_IGN);
  const sigset_t set = stop_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::jthread([this](std::stop_token ended) { wait(ended); });
}

void StopSignals::wait(std::stop_token ended) {
  const sigset_t set = stop_signals();
  while (!ended.stop_requested()) {
    const timespec patience{0, 100'000'000};  // until it asks whether it is still wanted
    const int signal = sigtimedwait(&set, nullptr, &patience);
    if (signal < 0) continue;
    if (stop_.stop_requested()) {
      spdlog::warn("told to stop a second time: ending at once");
      spdlog::shutdown();
      std::_Exit(128 + signal);
    }
    spdlog::info("told to stop: finishing what is begun");
    stop_.request_stop();
  }
}

}  // namespace coxswain
