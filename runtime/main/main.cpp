// coxswain-runtime: what a training pod runs, and what a person runs to train on one machine.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "contract/contract.h"
#include "runtime/config/key_table.h"
#include "runtime/config/parse.h"
#include "runtime/launch/agent.h"
#include "runtime/launch/ports.h"
#include "runtime/launch/resolved_config.h"

namespace coxswain {
namespace {

constexpr char kEnvWorkerProgram[] = "COXSWAIN_WORKER";

// Options that launch, llm and --config share.
struct LaunchFlags {
  std::optional<int> processes;
  double start_timeout_seconds = 600;
  double kill_after_seconds = 15;
};

void add_launch_flags(CLI::App& app, LaunchFlags& flags) {
  app.add_option("--nproc-per-node", flags.processes,
                 "Training processes on this machine (NPROC_PER_NODE; else 1)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--start-timeout", flags.start_timeout_seconds,
                 "Seconds to wait for the master of a job on several machines")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--kill-after", flags.kill_after_seconds,
                 "Seconds that the other processes have to end after one has failed")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
}

std::string worker_program(const EnvironmentLookup& environment) {
  if (const auto program = environment(kEnvWorkerProgram); program && !program->empty()) return *program;
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path() / "coxswain-worker").string();
}

Result<std::string> find_worker(const EnvironmentLookup& environment) {
  const std::string program = worker_program(environment);
  if (::access(program.c_str(), X_OK) == 0) return program;
  return fail(contract::ExitCode::kInternal,
              "The training program " + program + " is not there (" + std::strerror(errno) +
                  "); build coxswain-worker beside coxswain-runtime, or name it by " + kEnvWorkerProgram +
                  ".");
}

std::chrono::milliseconds milliseconds(double seconds) {
  constexpr double kLongest = 1e9;  // thirty years; also for what is no number
  return std::chrono::milliseconds(static_cast<int64_t>((seconds < kLongest ? seconds : kLongest) * 1000));
}

// A run on this machine alone takes any free port where none is asked for, so that two can run side by side.
Result<AgentOptions> agent_options(const LaunchFlags& flags, const EnvironmentLookup& environment) {
  Result<NodeEnvironment> node = read_node_environment(environment);
  if (!node) return tl::unexpected(node.error());
  AgentOptions options;
  options.node = *std::move(node);
  if (flags.processes) options.node.processes_per_node = *flags.processes;
  options.start_timeout = milliseconds(flags.start_timeout_seconds);
  options.kill_after = milliseconds(flags.kill_after_seconds);
  Result<std::string> worker = find_worker(environment);
  if (!worker) return tl::unexpected(worker.error());
  options.worker_program = *std::move(worker);

  const bool alone = options.node.nodes == 1 && is_loopback(options.node.master_addr);
  options.status_host = alone ? "127.0.0.1" : "0.0.0.0";
  options.status_port = contract::kAgentPort;
  if (const auto port = environment(contract::kEnvAgentPort); port && !port->empty()) {
    Result<int> number = read_port(contract::kEnvAgentPort, *port);
    if (!number) return tl::unexpected(number.error());
    options.status_port = *number;
  } else if (alone && !check_port_free(contract::kEnvAgentPort, options.status_port)) {
    options.status_port = 0;
  }
  if (alone && !environment(contract::kEnvMasterPort) &&
      !check_port_free(contract::kEnvMasterPort, options.node.master_port)) {
    Result<int> port = find_free_port();
    if (!port) return tl::unexpected(port.error());
    options.node.master_port = *port;
  }
  return options;
}

int launch(const std::string& config_path, const LaunchFlags& flags, const EnvironmentLookup& environment) {
  Result<AgentOptions> options = agent_options(flags, environment);
  if (!options) return report_failure(options.error(), environment);
  options->config_path = config_path;
  return run_agent(*options, environment);
}

int launch_file(const std::string& path, const std::vector<std::string>& overrides, const LaunchFlags& flags,
                const EnvironmentLookup& environment) {
  if (path.empty())
    return report_failure(
        {contract::ExitCode::kBadInput,
         std::string("No configuration: give --config FILE, or set ") + contract::kEnvConfig + "."},
        environment);
  if (overrides.empty()) {
    const Result<TrainConfig> config = load_train_config(path, {}, environment);
    return config ? launch(path, flags, environment) : report_failure(config.error(), environment);
  }
  const Result<ResolvedTrainConfig> resolved = resolve_train_config(path, overrides, environment);
  if (!resolved) return report_failure(resolved.error(), environment);
  const Result<ResolvedConfig> file = ResolvedConfig::make(resolved->yaml);
  return file ? launch(file->path(), flags, environment) : report_failure(file.error(), environment);
}

int launch_flags(std::vector<std::string> arguments, const EnvironmentLookup& environment) {
  LaunchFlags flags;
  CLI::App own;
  own.set_help_flag();
  own.allow_extras();
  add_launch_flags(own, flags);
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    own.parse(reversed);
  } catch (const CLI::ParseError& error) {
    return report_failure({contract::ExitCode::kBadInput, std::string(error.what()) + "."}, environment);
  }
  const Result<ResolvedTrainConfig> parsed = parse_llm_flags(own.remaining(), environment);
  if (!parsed) return report_failure(parsed.error(), environment);
  const Result<ResolvedConfig> file = ResolvedConfig::make(parsed->yaml);
  return file ? launch(file->path(), flags, environment) : report_failure(file.error(), environment);
}

void print_llm_help() {
  std::printf(
      "Fine-tunes a language model on this machine, with AITraining's flags.\n\n"
      "  coxswain-runtime llm --train --model models/SmolLM2-135M-Instruct --data-path data \\\n"
      "      --project-name my-run --trainer sft --peft --lr 1e-4\n\n"
      "  --train                               train (the one thing this does)\n"
      "  --nproc-per-node N                    training processes on this machine (default 1)\n\n");
  for (const ConfigKey& key : key_table()) {
    if (key.answer != KeyAnswer::kImplemented || key.field == "task") continue;
    const std::string flag =
        flag_name(key.field) + (key.is_boolean ? ", --no-" + flag_name(key.field).substr(2) : "");
    std::printf("  %s\n        %s\n        %s; default: %s\n", flag.c_str(), key.text.c_str(),
                key.values.c_str(), key.standard.c_str());
  }
}

// Becomes the sibling program; what it prints and how it ends is ours.
int become_worker(const std::string& command, const std::vector<std::string>& arguments,
                  const EnvironmentLookup& environment) {
  const Result<std::string> program = find_worker(environment);
  if (!program) return report_failure(program.error(), environment);
  std::vector<std::string> words = {*program, command};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execv(program->c_str(), pointers.data());
  return report_failure(
      {contract::ExitCode::kInternal, "Can't start " + *program + ": " + std::strerror(errno) + "."},
      environment);
}

constexpr char kDescription[] =
    "Trains language models: on this machine, or as one pod of a TrainingJob.\n\n"
    "Train here, from AITraining's YAML or flags:\n"
    "  coxswain-runtime --config train.yaml [--nproc-per-node 2]\n"
    "  coxswain-runtime llm --train --model MODEL --data-path DATA --project-name NAME\n\n"
    "While it trains, http://127.0.0.1:9470/progress says how far it is.";

constexpr char kFooter[] =
    "Exit codes: 0 done, 2 bad configuration or data, 70 internal, 74 storage, 75 stopped on request\n"
    "after saving, 76 lost a peer, 77 the master could not be reached, 78 port in use.\n"
    "All keys and flags: coxswain-runtime keys, coxswain-runtime llm --help.";

int run(int argc, char** argv) {
  const EnvironmentLookup environment = process_environment();
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  // These take arguments that are not ours to understand.
  if (!arguments.empty()) {
    const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
    if (arguments[0] == "train" || arguments[0] == "env" || arguments[0] == "generate")
      return become_worker(arguments[0], rest, environment);
    if (arguments[0] == "llm") {
      const bool help =
          std::any_of(rest.begin(), rest.end(), [](auto& word) { return word == "--help" || word == "-h"; });
      if (!help) return launch_flags(rest, environment);
      print_llm_help();
      return 0;
    }
  }

  CLI::App app(kDescription, contract::kRuntimeProgram);
  app.footer(kFooter);
  app.set_version_flag("--version", std::string("coxswain-runtime ") + COXSWAIN_VERSION);
  app.require_subcommand(0, 1);
  LaunchFlags flags;
  std::string config_path = environment(contract::kEnvConfig).value_or("");
  std::vector<std::string> overrides;
  const auto add_config_flags = [&](CLI::App& to) {
    to.add_option("--config", config_path, "The training configuration, AITraining's YAML (COXSWAIN_CONFIG)");
    to.add_option("--set", overrides,
                  "KEY=VALUE over the configuration, e.g. params.lr=1e-4; may be repeated")
        ->allow_extra_args(false);
    add_launch_flags(to, flags);
  };
  add_config_flags(app);
  CLI::App* launch_command = app.add_subcommand(
      "launch", "Start the workers of this node and watch over them (PID 1 of a training pod)");
  add_config_flags(*launch_command);
  app.add_subcommand("llm", "Train with flags instead of a file; see llm --help");
  app.add_subcommand("train", "One worker: what launch starts for each process (coxswain-worker train)");
  app.add_subcommand("env", "Report what this machine offers for training (coxswain-worker env)");
  app.add_subcommand("generate", "Answer a prompt with a model (coxswain-worker generate)");
  CLI::App* keys_command = app.add_subcommand("keys", "Print every key of the configuration, as Markdown");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : static_cast<int>(contract::ExitCode::kBadInput);
  }
  if (keys_command->parsed()) {
    std::fputs(configuration_reference().c_str(), stdout);
    return 0;
  }
  if (argc == 1 && config_path.empty()) {
    std::fputs(app.help().c_str(), stdout);
    return static_cast<int>(contract::ExitCode::kBadInput);
  }
  return launch_file(config_path, overrides, flags, environment);
}

}  // namespace
}  // namespace coxswain

// Ends without destructors: a thread of the status server may still serve a client.
[[noreturn]] static void leave(int exit_code) {
  std::fflush(nullptr);
  std::_Exit(exit_code);
}

int main(int argc, char** argv) {
  try {
    leave(coxswain::run(argc, argv));
  } catch (const std::exception& error) {  // no library's exception is meant to come so far
    std::fprintf(stderr, "coxswain: unexpected failure: %s\n", error.what());
    leave(static_cast<int>(coxswain::contract::ExitCode::kInternal));
  }
}
