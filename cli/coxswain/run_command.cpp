#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "cli/coxswain/commands.h"
#include "cli/coxswain/console.h"
#include "cli/coxswain/job_folder.h"
#include "cli/coxswain/manifest.h"
#include "cli/coxswain/run_session.h"
#include "operator/api/parse.h"
#include "operator/reconcile/render.h"

namespace coxswain {

namespace fs = std::filesystem;

namespace {

constexpr char kOutputFolder[] = "coxswain-output";
constexpr char kStateFolder[] = ".state";
constexpr char kRuntimeFolderVariable[] = "COXSWAIN_RUNTIME_DIR";

int report(const Failure& failure) {
  std::fprintf(stderr, "%s\n", failure.message.c_str());
  return failure.code == contract::ExitCode::kInternal ? kExitFailed : static_cast<int>(failure.code);
}

std::vector<fs::path> program_folders() {
  std::vector<fs::path> folders;
  if (const char* folder = std::getenv(kRuntimeFolderVariable)) folders.emplace_back(folder);
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (!error) folders.push_back(self.parent_path());
  return folders;
}

Result<NodeOptions> node_options(const RunOptions& options, const fs::path& state) {
  NodeOptions node{state, {}, fs::absolute(kOutputFolder), program_folders()};
  for (const std::string& volume : options.volumes) {
    const auto equals = volume.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == volume.size()) {
      return bad_input("--volume " + volume + ": write NAME=DIR, where NAME is the name of the claim");
    }
    const fs::path folder = fs::absolute(volume.substr(equals + 1)).lexically_normal();
    std::error_code error;
    const fs::file_status status = fs::status(folder, error);
    if (status.type() == fs::file_type::none) {
      return bad_input("--volume " + volume + ": cannot look at " + folder.string() + ": " + error.message());
    }
    if (fs::exists(status) && !fs::is_directory(status)) {
      return bad_input("--volume " + volume + ": " + folder.string() + " is not a folder");
    }
    node.volumes[volume.substr(0, equals)] = folder;
  }
  return node;
}

// The manifest with everything from the command line in it, checked.
Result<Json> prepared_manifest(const RunOptions& options) {
  auto manifest = load_training_job(options.file);
  if (!manifest) return manifest;
  for (const std::string& setting : options.settings) {
    if (auto applied = apply_setting(*manifest, setting); !applied) return tl::unexpected(applied.error());
  }
  anchor_paths(*manifest, fs::current_path());
  const auto problems = check_manifest(*manifest);
  if (problems.empty()) return manifest;
  std::string all;
  for (const Problem& problem : problems)
    all += (all.empty() ? "" : "\n") + options.file + ": " + to_string(problem);
  return bad_input(all);
}

// What would keep each pod from running is one sentence now rather than a failed job later.
Result<void> check_pods(const TrainingJob& job, const NodeOptions& node) {
  return ProcessNode::check(render_pod(job, 0, 0, ""), node);
}

void say_what_is_not_run(const TrainingJob& job, Console& console) {
  for (const std::string& warning : overridden_by_operator(job)) console.say("warning: " + warning);
  const Json pod = render_pod(job, 0, 0, "");
  for (const char* field : {"initContainers", "containers"}) {
    for (const Json& container : pod["spec"].value(field, Json::array())) {
      const bool sidecar = field == std::string("containers")
                               ? container.value("name", "") != contract::kTrainerContainer
                               : container.value("restartPolicy", "") == "Always";
      if (sidecar) console.say("note: the sidecar \"" + container.value("name", "") + "\" is not run here");
    }
  }
}

fs::path output_of(const TrainingJob& job, const NodeOptions& node) {
  const Output& output = job.spec.output;
  const fs::path root =
      output.claim_name ? node.volumes.at(*output.claim_name) / output.sub_path : node.output_folder;
  return (root / job.metadata.name).lexically_normal();
}

bool has_finished(const Json& stored) {
  return is_finished(parse_training_job(stored).status);
}

int run_in(const JobFolder& folder, const RunOptions& options, const Json& manifest,
           const NodeOptions& node) {
  auto stored = folder.load();
  if (!stored) return report(stored.error());
  if (*stored && has_finished(**stored)) stored->reset();
  const TrainingJob job = parse_training_job(manifest);
  folder.clear_pods();
  Console console(stdout);
  install_stop_handlers();
  RunSession session(folder, console, {node, options.follow});
  const auto begun = session.begin(manifest, *stored);
  if (!begun) {
    std::fprintf(stderr, "%s: %s\n", options.file.c_str(), begun.error().message.c_str());
    if (*stored) {
      std::fprintf(stderr,
                   "an unfinished run of this job is in %s: undo the change to go on with it, or remove that "
                   "folder to start afresh\n",
                   folder.path().c_str());
    }
    return static_cast<int>(contract::ExitCode::kBadInput);
  }
  say_what_is_not_run(job, console);
  const fs::path output = output_of(job, node);
  console.say((*stored ? "going on with job " : "job ") + job.metadata.name + "; its outputs go to " +
              output.string());
  const int exit_status = session.work();
  if (exit_status == 0) console.say("done; the outputs are in " + output.string());
  return exit_status;
}

}  // namespace

int run_job(const RunOptions& options) {
  if (std::error_code error; fs::current_path(error).empty()) {
    return report({contract::ExitCode::kBadInput,
                   "the current folder is gone (" + error.message() + "): go to another one"});
  }
  const auto manifest = prepared_manifest(options);
  if (!manifest) return report(manifest.error());
  const TrainingJob job = parse_training_job(*manifest);
  const fs::path state =
      fs::absolute(options.state_folder.empty() ? fs::path(kOutputFolder) / job.metadata.name / kStateFolder
                                                : fs::path(options.state_folder));
  const auto node = node_options(options, state);
  if (!node) return report(node.error());
  if (auto checked = check_pods(job, *node); !checked) {
    std::fprintf(stderr, "%s: %s\n", options.file.c_str(), checked.error().message.c_str());
    return static_cast<int>(checked.error().code);
  }
  const auto folder = JobFolder::open(state);
  if (!folder) return report(folder.error());
  return run_in(*folder, options, *manifest, *node);
}

}  // namespace coxswain
