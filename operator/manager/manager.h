// The operator put together: clients, leader election, the controller, and what it shows of itself.
#pragma once

#include <stop_token>

#include "contract/result.h"
#include "operator/manager/options.h"
#include "runtime/config/environment.h"

namespace coxswain {

constexpr int kExitLeaseLost = 1;

// Works until it is asked to stop (then it drains and hands over the lease), or fails at the start: a mistake
// in kubeconfig or flags. Where the lease is lost it ends the program, exit status 1: after that moment
// nothing more may be written, and what is under way can't be called back.
Result<void> run_operator(const OperatorOptions& options, const EnvironmentLookup& environment,
                          std::stop_token stop);

}  // namespace coxswain
