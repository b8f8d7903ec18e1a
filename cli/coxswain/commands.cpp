#include "cli/coxswain/commands.h"

#include <cstdio>

#include "cli/coxswain/manifest.h"
#include "operator/api/parse.h"
#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/render.h"

namespace coxswain {

namespace {

int report(const Failure& failure) {
  std::fprintf(stderr, "%s\n", failure.message.c_str());
  return static_cast<int>(failure.code);
}

int report(const std::string& file, const std::vector<Problem>& problems) {
  for (const Problem& problem : problems)
    std::fprintf(stderr, "%s: %s\n", file.c_str(), to_string(problem).c_str());
  return problems.empty() ? 0 : static_cast<int>(contract::ExitCode::kBadInput);
}

}  // namespace

int validate_files(const std::vector<std::string>& files) {
  int exit_status = 0;
  for (const std::string& file : files) {
    const auto jobs = load_training_jobs(file);
    if (!jobs) {
      exit_status = report(jobs.error());
      continue;
    }
    int file_status = 0;
    for (const Json& job : *jobs) file_status = std::max(file_status, report(file, check_manifest(job)));
    if (file_status == 0) std::printf("%s: ok\n", file.c_str());
    exit_status = std::max(exit_status, file_status);
  }
  return exit_status;
}

int render_file(const std::string& file, const std::vector<std::string>& settings) {
  auto manifest = load_training_job(file);
  if (!manifest) return report(manifest.error());
  for (const std::string& setting : settings) {
    if (auto applied = apply_setting(*manifest, setting); !applied) return report(applied.error());
  }
  if (const int problems = report(file, check_manifest(*manifest))) return problems;
  const TrainingJob job = parse_training_job(*manifest);
  for (const std::string& warning : overridden_by_operator(job)) {
    std::fprintf(stderr, "%s: warning: %s\n", file.c_str(), warning.c_str());
  }
  for (const Json& child : render_children(job, job.status.attempt, Settings().runtime_image)) {
    std::printf("---\n%s", to_yaml(child).c_str());
  }
  return 0;
}

}  // namespace coxswain
