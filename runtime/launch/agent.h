// The agent: PID 1 of a training pod, or the foreground program of a run on one machine. Starts the pod's
// workers, passes on their output, answers for their progress, and ends with the exit code that tells why the
// attempt ended.
#pragma once

#include <chrono>
#include <string>

#include "contract/result.h"
#include "runtime/config/environment.h"
#include "runtime/launch/rank_environment.h"

namespace coxswain {

struct AgentOptions {
  NodeEnvironment node;
  std::string config_path;  // a valid configuration; workers get it as COXSWAIN_CONFIG
  std::string worker_program;
  std::chrono::milliseconds start_timeout{600'000};  // for the master to be reached, where node_rank > 0
  std::chrono::milliseconds kill_after{
      15'000};              // from a worker's failure, or a second Ctrl-C, to SIGKILL for the rest
  std::string status_host;  // address of /progress
  int status_port = 0;      // 0: any free one
};

// Runs the attempt and returns the exit code of this pod. Never throws. To be called once, from the main
// thread of a program without other threads: takes SIGTERM, SIGINT and SIGCHLD, reaps every child of the
// process (as PID 1 or subreaper also orphans). SIGTERM and SIGINT are passed on as SIGTERM; a second SIGINT
// kills. Writes the termination message if the attempt failed.
int run_agent(const AgentOptions& options, const EnvironmentLookup& environment);

// Prints the sentence on stderr, writes it as termination message, and returns the exit code.
int report_failure(const Failure& failure, const EnvironmentLookup& environment);

}  // namespace coxswain
