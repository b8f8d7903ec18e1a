// The commands of `coxswain`; each returns the exit status of the program.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace coxswain {

// Exit statuses beside those of contract.h.
inline constexpr int kExitFailed =
    1;  // the job failed without an exit code of its own, or couldn't be run here
inline constexpr int kExitKilled = 130;  // ended by a second Ctrl-C

struct RunOptions {
  std::string file;
  std::vector<std::string> settings;  // PATH=VALUE
  std::vector<std::string> volumes;   // NAME=DIR
  std::string state_folder;           // "": <output folder>/<job>/.state
  bool follow = false;                // all pods' output instead of rank 0's
};

// Trains here until the job has ended or Ctrl-C has suspended it.
int run_job(const RunOptions& options);

// Prints every problem of every file to stderr as `file: field: message`.
int validate_files(const std::vector<std::string>& files);

// Prints what the operator would create for the first attempt, as YAML.
int render_file(const std::string& file, const std::vector<std::string>& settings);

}  // namespace coxswain
