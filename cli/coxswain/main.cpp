// `coxswain`: a person's tool for TrainingJobs.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "cli/coxswain/commands.h"
#include "contract/contract.h"

namespace {

constexpr char kRunHelp[] =
    "Trains on this machine what the manifest describes, without a cluster: each pod is a group of "
    "processes, the\n"
    "restart rules are the operator's.\n\n"
    "Outputs go to ./coxswain-output/<job>, or, where spec.output names a claim, to the folder that --volume "
    "gives it.\n"
    "Relative paths in spec.config (base_model, data.path) are relative to the current folder. Each pod's "
    "output is\n"
    "kept in <state folder>/logs.\n\n"
    "Ctrl-C suspends the job: it saves a checkpoint and ends (exit status 75); the same command goes on from "
    "there.\n"
    "Ctrl-C twice kills it. A job that has finished starts anew.\n\n"
    "Exit status: 0 complete, 2 a mistake in manifest, configuration or data, 75 suspended, 130 killed, else "
    "the exit\n"
    "code of the pod that made the job fail, or 1.";

constexpr char kSetHelp[] =
    "Overrides a field of the manifest: nodes=3, config.params.lr=1e-4, "
    "\"resources.limits.\\\"nvidia.com/gpu\\\"=1\". "
    "The path begins at spec, the value is YAML. Repeatable";

void add_run(CLI::App& app, coxswain::RunOptions& options) {
  CLI::App* run = app.add_subcommand("run", "Train here what a TrainingJob describes");
  run->footer(kRunHelp);
  run->add_option("FILE", options.file, "YAML file with one TrainingJob")->required();
  run->add_option("--set", options.settings, kSetHelp)
      ->type_name("PATH=VALUE")
      ->take_all()
      ->allow_extra_args(false);
  run->add_option("--volume", options.volumes,
                  "The folder that stands for the claim NAME (or the hostPath volume NAME). Repeatable")
      ->type_name("NAME=DIR")
      ->take_all()
      ->allow_extra_args(false);
  run->add_flag("--follow,-f", options.follow, "Print the output of all pods, not only of rank 0's");
  run->add_option(
         "--state-dir", options.state_folder,
         "Where the run keeps what it needs to go on later (default: ./coxswain-output/<job>/.state)")
      ->type_name("DIR");
}

int run(int argc, char** argv) {
  CLI::App app("Coxswain trains models: from one TrainingJob manifest, here or on Kubernetes.", "coxswain");
  app.set_version_flag("--version", std::string("coxswain ") + COXSWAIN_VERSION);
  app.require_subcommand(1);

  coxswain::RunOptions run_options;
  add_run(app, run_options);

  std::vector<std::string> files;
  CLI::App* validate =
      app.add_subcommand("validate", "Check manifests: all mistakes at once, exit status 2 if any");
  validate->add_option("FILE", files, "YAML files with TrainingJobs")->required();

  std::string file;
  std::vector<std::string> settings;
  CLI::App* render =
      app.add_subcommand("render", "Print the Service, ConfigMap and pods that the operator would create");
  render->add_option("FILE", file, "YAML file with one TrainingJob")->required();
  render->add_option("--set", settings, kSetHelp)
      ->type_name("PATH=VALUE")
      ->take_all()
      ->allow_extra_args(false);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(coxswain::contract::ExitCode::kBadInput);
  }
  if (app.got_subcommand("run")) return coxswain::run_job(run_options);
  if (app.got_subcommand("validate")) return coxswain::validate_files(files);
  return coxswain::render_file(file, settings);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {  // no library's exception is meant to come so far
    std::fprintf(stderr, "coxswain: unexpected failure: %s\n", error.what());
    return static_cast<int>(coxswain::contract::ExitCode::kInternal);
  }
}
