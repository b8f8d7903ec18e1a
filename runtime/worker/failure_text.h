// From exceptions of libraries to failures with one sentence.
#pragma once

#include <exception>
#include <string>

#include "contract/result.h"
#include "runtime/config/train_config.h"

namespace coxswain {

// For the exception that is being handled: a lost peer (kLostPeer), memory (what to change, with the numbers
// of `config`), anything else (kInternal).
Failure describe_current_exception(const TrainConfig& config);

template <typename Function>
auto failures_of(const Function& function, const TrainConfig& config) -> decltype(function()) {
  try {
    return function();
  } catch (...) {
    return tl::unexpected(describe_current_exception(config));
  }
}

}  // namespace coxswain
