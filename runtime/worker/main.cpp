// coxswain-worker: the program that links LibTorch. `train` is one rank of a training, started by the agent;
// `env` reports what the program runs on; `generate` answers a prompt.
#include <torch/torch.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>

#include "contract/contract.h"
#include "contract/result.h"
#include "runtime/config/environment.h"
#include "runtime/config/parse.h"
#include "runtime/launch/rank_environment.h"
#include "runtime/metrics/progress_pipe.h"
#include "runtime/train/environment_report.h"
#include "runtime/train/stop_request.h"
#include "runtime/train/train.h"
#include "runtime/worker/failure_text.h"
#include "runtime/worker/generate_command.h"

namespace coxswain {
namespace {

using contract::ExitCode;

Result<TrainOutcome> train_as_told(const ProgressPipe& progress, const RankEnvironment& ranks) {
  if (!ranks.job.config_path) {
    return bad_input("COXSWAIN_CONFIG is not set; start training through coxswain-runtime, which sets it.");
  }
  auto config = load_train_config(*ranks.job.config_path, {}, process_environment());
  if (!config) return tl::unexpected(config.error());
  return failures_of([&] { return train(*config, ranks, progress); }, *config);
}

// The process ends without destructors: those of a process group would wait for ranks that are gone.
[[noreturn]] void leave(ExitCode code) {
  std::fflush(nullptr);
  std::_Exit(static_cast<int>(code));
}

[[noreturn]] void leave_with(const Failure& failure, const ProgressPipe& progress, int rank) {
  std::fflush(stdout);
  std::fprintf(stderr, "coxswain: rank %d: %s\n", rank, failure.message.c_str());
  progress.error(failure.code, failure.message);
  leave(failure.code);
}

[[noreturn]] void run_train() {
  install_stop_handler();
  auto ranks = read_rank_environment(process_environment());
  if (!ranks) leave_with(ranks.error(), ProgressPipe(std::nullopt), 0);
  const ProgressPipe progress(ranks->progress_fd);
  auto outcome = train_as_told(progress, *ranks);
  if (!outcome) leave_with(outcome.error(), progress, ranks->rank);
  leave(*outcome == TrainOutcome::kDone ? ExitCode::kDone : ExitCode::kStopped);
}

void use_threads_of_environment() {
  const char* wanted = std::getenv("OMP_NUM_THREADS");
  if (wanted != nullptr && std::atoi(wanted) > 0) at::set_num_threads(std::atoi(wanted));
}

int run_generate(const GenerateOptions& options) {
  auto answer = failures_of([&] { return generate_answer(options); }, TrainConfig{});
  if (!answer) {
    std::fprintf(stderr, "coxswain: %s\n", answer.error().message.c_str());
    return static_cast<int>(answer.error().code);
  }
  std::printf("%s\n", answer->c_str());
  return 0;
}

int run(int argc, char** argv) {
  CLI::App app("The training worker of Coxswain.", "coxswain-worker");
  app.require_subcommand(1);
  app.add_subcommand("train",
                     "Train as one rank, as the environment says (RANK, WORLD_SIZE, COXSWAIN_CONFIG …)");
  app.add_subcommand("env", "Report what this program runs on");
  auto* generate = app.add_subcommand("generate", "Answer a prompt, greedily");
  GenerateOptions options;
  generate->add_option("--model", options.model_folder, "Model folder")->required();
  generate->add_option("--adapter", options.adapter_folder, "LoRA adapter folder (PEFT's format)");
  generate->add_option("--prompt", options.prompt, "What to answer")->required();
  generate->add_option("--system", options.system_prompt, "System message, where the template has one");
  generate->add_option("--max-new-tokens", options.max_new_tokens, "Longest answer")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : static_cast<int>(ExitCode::kBadInput);
  }
  use_threads_of_environment();
  if (app.got_subcommand("train")) run_train();
  if (app.got_subcommand("generate")) return run_generate(options);
  std::fputs(environment_report().c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace coxswain

int main(int argc, char** argv) {
  return coxswain::run(argc, argv);
}
