#include "runtime/train/stop_request.h"

#include <csignal>

namespace coxswain {
namespace {

volatile std::sig_atomic_t requested = 0;

void on_signal(int) {
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

bool stop_requested() {
  return requested != 0;
}

}  // namespace coxswain
