// `coxswain-operator`: the controller of TrainingJobs.
#include <spdlog/spdlog.h>

#include <cstdio>
#include <exception>

#include "contract/contract.h"
#include "operator/logging/log_lines.h"
#include "operator/manager/heap.h"
#include "operator/manager/manager.h"
#include "operator/manager/options.h"
#include "operator/manager/stop_signals.h"

namespace coxswain {
namespace {

int run(int argc, char** argv) {
  share_memory_between_threads();
  const auto parsed = parse_operator_options(argc, argv);
  if (const auto* goodbye = std::get_if<Goodbye>(&parsed)) {
    std::fputs(goodbye->out.c_str(), stdout);
    std::fputs(goodbye->err.c_str(), stderr);
    return goodbye->exit_status;
  }
  const auto& options = std::get<OperatorOptions>(parsed);
  set_up_logging(options.log_format == "json" ? LogFormat::kJson : LogFormat::kText, options.log_level);
  StopSignals signals;
  const std::jthread heap = give_back_free_memory();
  const auto ended = run_operator(options, process_environment(), signals.token());
  if (ended) return 0;
  std::fprintf(stderr, "coxswain-operator: %s\n", ended.error().message.c_str());
  return static_cast<int>(ended.error().code);
}

}  // namespace
}  // namespace coxswain

int main(int argc, char** argv) {
  try {
    return coxswain::run(argc, argv);
  } catch (const std::exception& error) {  // no library's exception is meant to come so far
    std::fprintf(stderr, "coxswain-operator: unexpected failure: %s\n", error.what());
    return static_cast<int>(coxswain::contract::ExitCode::kInternal);
  }
}
