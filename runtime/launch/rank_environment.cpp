#include "runtime/launch/rank_environment.h"

#include <charconv>
#include <limits>

namespace coxswain {

namespace {

using contract::kEnvJobAttempt;

// A whole number from `minimum` to `maximum`; `standard` where the variable isn't set or empty.
Result<int> whole_number(const EnvironmentLookup& environment, const char* name, int standard, int minimum,
                         int maximum = std::numeric_limits<int>::max()) {
  const std::optional<std::string> text = environment(name);
  if (!text || text->empty()) return standard;
  int number = 0;
  const auto [stop, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error == std::errc() && stop == text->data() + text->size() && number >= minimum && number <= maximum)
    return number;
  std::string range = "a whole number from " + std::to_string(minimum);
  if (maximum != std::numeric_limits<int>::max()) range += " to " + std::to_string(maximum);
  return bad_input(std::string("The environment variable ") + name + " is '" + *text + "', but must be " +
                   range + ".");
}

Result<double> seconds(const EnvironmentLookup& environment, const char* name, double standard) {
  const std::optional<std::string> text = environment(name);
  if (!text || text->empty()) return standard;
  double number = 0;
  const auto [stop, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error == std::errc() && stop == text->data() + text->size() && number >= 0) return number;
  return bad_input(std::string("The environment variable ") + name + " is '" + *text +
                   "', but must be a number of seconds from 0.");
}

std::optional<std::string> not_empty(std::optional<std::string> text) {
  return text && !text->empty() ? text : std::nullopt;
}

Result<JobEnvironment> read_job(const EnvironmentLookup& environment) {
  JobEnvironment job;
  job.name = environment(contract::kEnvJobName).value_or("");
  job.uid = environment(contract::kEnvJobUid).value_or("");
  job.config_path = not_empty(environment(contract::kEnvConfig));
  job.output_dir = not_empty(environment(contract::kEnvOutputDir));
  job.recovery_dir = not_empty(environment(contract::kEnvRecoveryDir));
  const Result<int> attempt = whole_number(environment, kEnvJobAttempt, 0, 0);
  if (!attempt) return tl::unexpected(attempt.error());
  job.attempt = *attempt;
  const Result<double> interval =
      seconds(environment, contract::kEnvRecoveryInterval, job.recovery_interval_seconds);
  if (!interval) return tl::unexpected(interval.error());
  job.recovery_interval_seconds = *interval;
  return job;
}

// Reads one variable into `field`; the first failure stays in `result`.
template <typename Environment>
void read_into(Result<Environment>& result, int Environment::*field, const EnvironmentLookup& environment,
               const char* name, int minimum, int maximum = std::numeric_limits<int>::max()) {
  if (!result) return;
  const Result<int> number = whole_number(environment, name, (*result).*field, minimum, maximum);
  if (number)
    (*result).*field = *number;
  else
    result = tl::unexpected(number.error());
}

template <typename Environment>
Result<Environment> read_master_and_job(const EnvironmentLookup& environment) {
  Result<Environment> result = Environment{};
  if (auto address = not_empty(environment(contract::kEnvMasterAddr))) result->master_addr = *address;
  Result<JobEnvironment> job = read_job(environment);
  if (!job) return tl::unexpected(job.error());
  result->job = *std::move(job);
  read_into(result, &Environment::master_port, environment, contract::kEnvMasterPort, 1, 65535);
  return result;
}

Result<void> below(const char* name, int value, const char* limit_name, int limit) {
  if (value < limit) return {};
  return bad_input(std::string(name) + " is " + std::to_string(value) + ", but must be below " + limit_name +
                   ", which is " + std::to_string(limit) + ".");
}

}  // namespace

Result<RankEnvironment> read_rank_environment(const EnvironmentLookup& environment) {
  Result<RankEnvironment> ranks = read_master_and_job<RankEnvironment>(environment);
  read_into(ranks, &RankEnvironment::world_size, environment, contract::kEnvWorldSize, 1);
  read_into(ranks, &RankEnvironment::rank, environment, contract::kEnvRank, 0);
  read_into(ranks, &RankEnvironment::local_world_size, environment, contract::kEnvLocalWorldSize, 1);
  read_into(ranks, &RankEnvironment::local_rank, environment, contract::kEnvLocalRank, 0);
  if (!ranks) return ranks;
  const Result<int> fd = whole_number(environment, contract::kEnvProgressFd, -1, 0);
  if (!fd) return tl::unexpected(fd.error());
  if (*fd >= 0) ranks->progress_fd = *fd;
  Result<void> valid = below(contract::kEnvRank, ranks->rank, contract::kEnvWorldSize, ranks->world_size);
  if (valid)
    valid = below(contract::kEnvLocalRank, ranks->local_rank, contract::kEnvLocalWorldSize,
                  ranks->local_world_size);
  if (!valid) return tl::unexpected(valid.error());
  if (ranks->local_world_size > ranks->world_size)
    return bad_input("LOCAL_WORLD_SIZE is " + std::to_string(ranks->local_world_size) +
                     ", but WORLD_SIZE is only " + std::to_string(ranks->world_size) +
                     "; set both or neither.");
  return ranks;
}

Result<NodeEnvironment> read_node_environment(const EnvironmentLookup& environment) {
  Result<NodeEnvironment> node = read_master_and_job<NodeEnvironment>(environment);
  read_into(node, &NodeEnvironment::nodes, environment, contract::kEnvNodes, 1);
  read_into(node, &NodeEnvironment::node_rank, environment, contract::kEnvNodeRank, 0);
  read_into(node, &NodeEnvironment::processes_per_node, environment, contract::kEnvProcessesPerNode, 1);
  if (!node) return node;
  if (Result<void> valid = below(contract::kEnvNodeRank, node->node_rank, contract::kEnvNodes, node->nodes);
      !valid)
    return tl::unexpected(valid.error());
  return node;
}

}  // namespace coxswain
