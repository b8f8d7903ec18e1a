#include "operator/manager/manager.h"

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include "operator/client/rest/rest_api_client.h"
#include "operator/controller/controller.h"
#include "operator/manager/config_check.h"

namespace coxswain {

namespace {

// What happens to other pods of a gang within this time costs no pass of its own.
constexpr Duration kChildBatch = std::chrono::milliseconds(300);

ControllerOptions controller_options(const OperatorOptions& options) {
  ControllerOptions result;
  result.namespaces = options.namespaces;
  result.watch_nodes = options.watch_nodes;
  result.settings.runtime_image = options.runtime_image;
  result.settings.check_config = check_config_of;
  result.settings.progress_interval = options.progress_interval;
  result.progress_interval = options.progress_interval;
  result.child_batch = kChildBatch;
  result.workers = options.workers;
  result.parallel_writes = options.parallel_writes;
  result.drain_limit = options.drain_timeout;
  return result;
}

RestClientOptions client_options(const OperatorOptions& options) {
  RestClientOptions result;
  result.queries_per_second = options.queries_per_second;
  result.burst = options.burst;
  result.user_agent = std::string("coxswain-operator/") + COXSWAIN_VERSION;
  return result;
}

}  // namespace

Result<void> run_operator(const OperatorOptions& options, const EnvironmentLookup& environment,
                          std::stop_token stop) {
  const auto access = find_cluster_access(options.access, environment);
  if (!access) return tl::unexpected(access.error());
  auto api = RestApiClient::connect(*access, client_options(options), environment);
  if (!api) return tl::unexpected(api.error());
  spdlog::info("the API server is that of {}; namespaces: {}", access->source,
               options.namespaces.empty() ? "all" : fmt::format("{}", fmt::join(options.namespaces, ", ")));
  Controller controller(**api, nullptr, system_time, controller_options(options));
  controller.run(stop);
  return {};
}

}  // namespace coxswain
