#include "runtime/train/stop_request.h"

#include <unistd.h>

#include <csignal>

#include "contract/contract.h"

namespace coxswain {
namespace {

volatile std::sig_atomic_t requested = 0;
volatile std::sig_atomic_t at_step_boundaries = 0;

void on_signal(int) {
  if (at_step_boundaries == 0) _exit(static_cast<int>(contract::ExitCode::kStopped));
  requested = 1;
}

}  // namespace

void install_stop_handler() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
}

void stop_at_step_boundaries() {
  at_step_boundaries = 1;
}

bool stop_requested() {
  return requested != 0;
}

}  // namespace coxswain
