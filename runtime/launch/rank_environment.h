// What a process of a training job is told by its environment (contract/contract.h), read once at start.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "contract/contract.h"
#include "contract/result.h"
#include "runtime/config/environment.h"

namespace coxswain {

// The job that the process belongs to. On a laptop, without an operator: empty names, attempt 0, no folders.
struct JobEnvironment {
  std::string name;
  std::string uid;
  int attempt = 0;
  std::optional<std::string> config_path;   // COXSWAIN_CONFIG
  std::optional<std::string> output_dir;    // COXSWAIN_OUTPUT_DIR
  std::optional<std::string> recovery_dir;  // COXSWAIN_RECOVERY_DIR
  double recovery_interval_seconds = 600;   // 0: no recovery checkpoint but the one on SIGTERM
};

// One worker's place among all. Checked: 0 ≤ rank < world_size, 0 ≤ local_rank < local_world_size ≤
// world_size. Without any of the variables: rank 0 of 1.
struct RankEnvironment {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
  std::string master_addr = "127.0.0.1";
  int master_port = contract::kMasterPort;
  std::optional<int> progress_fd;  // COXSWAIN_PROGRESS_FD; see metrics/progress_pipe.h
  JobEnvironment job;
};

// One pod's place among all, for the agent. Checked: 0 ≤ node_rank < nodes, processes_per_node ≥ 1.
struct NodeEnvironment {
  int nodes = 1;
  int node_rank = 0;
  int processes_per_node = 1;
  std::string master_addr = "127.0.0.1";
  int master_port = contract::kMasterPort;
  JobEnvironment job;
};

// A variable that is no number, or out of range, is bad input; the message names it and its value.
Result<RankEnvironment> read_rank_environment(const EnvironmentLookup& environment);
Result<NodeEnvironment> read_node_environment(const EnvironmentLookup& environment);

}  // namespace coxswain
