// What `coxswain-operator` may be told: each flag, its environment variable, its default, what is allowed.
#pragma once

#include <chrono>
#include <string>
#include <variant>
#include <vector>

#include "contract/result.h"
#include "operator/client/rest/cluster_access.h"

namespace coxswain {

struct LeaderElectionFlags {
  bool enabled = true;
  std::string namespace_name;  // "": the one that the program's credentials belong to
  std::string lease_name = "coxswain-operator";
  std::chrono::milliseconds lease_duration{15'000};
  std::chrono::milliseconds renew_deadline{10'000};
  std::chrono::milliseconds retry_period{2'000};
};

struct OperatorOptions {
  AccessChoice access;
  double queries_per_second = 100;
  int burst = 200;

  std::vector<std::string> namespaces;  // sorted, each once; empty: all
  bool watch_nodes = true;
  int workers = 8;
  int parallel_writes = 16;
  std::chrono::milliseconds drain_timeout{10'000};

  std::string runtime_image;
  std::chrono::milliseconds progress_interval{15'000};

  LeaderElectionFlags leader_election;
  std::string metrics_address = ":8080";  // "0": not served
  std::string health_address = ":8081";
  std::string log_level = "info";
  std::string log_format = "text";
};

// Asked for --help or --version, or told what it doesn't understand: what to print, and where.
struct Goodbye {
  int exit_status = 0;
  std::string out;
  std::string err;
};

// A flag wins over its environment variable, COXSWAIN_OPERATOR_ and the flag in capitals. The cluster sets
// variables of that beginning too where a Service is called coxswain-operator; all of those end in ways that
// no flag does.
std::variant<OperatorOptions, Goodbye> parse_operator_options(int argc, const char* const* argv);

}  // namespace coxswain
