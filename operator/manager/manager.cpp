#include "operator/manager/manager.h"

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>

#include "operator/client/rest/rest_api_client.h"
#include "operator/controller/controller.h"
#include "operator/election/fenced_api.h"
#include "operator/election/leader_elector.h"
#include "operator/logging/log_lines.h"
#include "operator/manager/config_check.h"
#include "operator/metrics/operator_metrics.h"
#include "operator/progress/http_progress_reader.h"
#include "operator/serving/operator_pages.h"

namespace coxswain {

namespace {

// What happens to other pods of a gang within this time costs no pass of its own.
constexpr Duration kChildBatch = std::chrono::milliseconds(300);

ControllerOptions controller_options(const OperatorOptions& options, const std::string& identity,
                                     OperatorMetrics& metrics) {
  ControllerOptions result;
  result.events.instance = identity;
  result.events.logged = true;
  result.observer = &metrics;
  result.namespaces = options.namespaces;
  result.watch_nodes = options.watch_nodes;
  result.settings.runtime_image = options.runtime_image;
  result.settings.check_config = check_config_of;
  result.settings.progress_interval = options.progress_interval;
  result.child_batch = kChildBatch;
  result.workers = options.workers;
  result.parallel_writes = options.parallel_writes;
  result.drain_limit = options.drain_timeout;
  return result;
}

RestClientOptions client_options(const OperatorOptions& options, OperatorMetrics& metrics) {
  RestClientOptions result;
  result.on_request = [&metrics](const RequestRecord& record) { metrics.on_request(record); };
  result.queries_per_second = options.queries_per_second;
  result.burst = options.burst;
  result.user_agent = std::string("coxswain-operator/") + COXSWAIN_VERSION;
  return result;
}

// Quick to give up, as a renewal that is late is as good as none; the elector tries again by itself.
RestClientOptions lease_client_options(const OperatorOptions& options, OperatorMetrics& metrics) {
  RestClientOptions result = client_options(options, metrics);
  result.request_timeout = options.leader_election.renew_deadline / 2;
  result.retry.max_attempts = 1;
  return result;
}

ElectionSettings election_settings(const LeaderElectionFlags& flags, const std::string& default_namespace) {
  ElectionSettings settings;
  settings.namespace_name = flags.namespace_name.empty() ? default_namespace : flags.namespace_name;
  settings.lease_name = flags.lease_name;
  settings.identity = make_identity();
  settings.lease_duration = flags.lease_duration;
  settings.renew_deadline = flags.renew_deadline;
  settings.retry_period = flags.retry_period;
  return settings;
}

[[noreturn]] void end_without_lease() {
  spdlog::critical("the lease is lost: ending at once, since another operator may be working");
  spdlog::shutdown();
  std::_Exit(kExitLeaseLost);
}

// Standing by is ready: it is what a second operator is for.
std::optional<std::string> not_ready(const LeaderElector* elector, const Controller& controller) {
  if (elector != nullptr && !elector->leads()) {
    if (elector->takes_part()) return std::nullopt;
    return "the lease has not been read yet; the log says why if that lasts";
  }
  const std::vector<std::string> unlisted = controller.view().unlisted();
  if (unlisted.empty()) return std::nullopt;
  return fmt::format("not listed yet: {}; the log says why if that lasts", fmt::join(unlisted, ", "));
}

// The lease is held until the last pass has ended, and then handed over.
void work_as_leader(LeaderElector& elector, Controller& controller, OperatorMetrics& metrics,
                    std::stop_token stop) {
  if (!elector.acquire(stop)) return;
  metrics.set_leader(true);
  std::jthread holding([&](std::stop_token drained) {
    if (!elector.hold(drained)) end_without_lease();
  });
  controller.run(stop);
  holding.request_stop();
  holding.join();
  metrics.set_leader(false);
  elector.release();
}

// For as long as it lives, the jobs of the controller's cache are what the metrics count.
class CountedJobs {
 public:
  CountedJobs(OperatorMetrics& metrics, const Controller& controller) : metrics_(metrics) {
    metrics_.set_jobs([&controller] { return controller.view().jobs(); });
  }
  ~CountedJobs() { metrics_.set_jobs(nullptr); }
  CountedJobs(const CountedJobs&) = delete;
  CountedJobs& operator=(const CountedJobs&) = delete;

 private:
  OperatorMetrics& metrics_;
};

}  // namespace

Result<void> run_operator(const OperatorOptions& options, const EnvironmentLookup& environment,
                          std::stop_token stop) {
  const auto access = find_cluster_access(options.access, environment);
  if (!access) return tl::unexpected(access.error());
  OperatorMetrics metrics(COXSWAIN_VERSION);
  auto api = RestApiClient::connect(*access, client_options(options, metrics), environment);
  if (!api) return tl::unexpected(api.error());
  spdlog::info("the API server is that of {}; namespaces: {}", access->source,
               options.namespaces.empty() ? "all" : fmt::format("{}", fmt::join(options.namespaces, ", ")));
  if (!options.watch_nodes) {
    spdlog::info(
        "nodes are not watched: runPolicy.nodeLostTimeoutSeconds has no effect, and a lost node is noticed "
        "when "
        "Kubernetes evicts its pods");
  }
  const ElectionSettings election = election_settings(options.leader_election, access->default_namespace);
  if (auto checked = check(election); !checked) return checked;
  std::unique_ptr<RestApiClient> lease_api;
  std::unique_ptr<LeaderElector> elector;
  if (options.leader_election.enabled) {
    auto connected = RestApiClient::connect(*access, lease_client_options(options, metrics), environment);
    if (!connected) return tl::unexpected(connected.error());
    lease_api = std::move(*connected);
    elector = std::make_unique<LeaderElector>(*lease_api, election);
  }
  FencedApi fenced(**api, [&elector] { return elector == nullptr || elector->leads(); });
  HttpProgressReader progress;
  Controller controller(fenced, &progress, system_time,
                        controller_options(options, election.identity, metrics));
  const CountedJobs counted(metrics, controller);
  const auto metrics_page =
      serve_metrics("--metrics-bind-address", options.metrics_address, [&] { return metrics.text(); });
  if (!metrics_page) return tl::unexpected(metrics_page.error());
  const auto health = serve_health("--health-bind-address", options.health_address,
                                   [&] { return not_ready(elector.get(), controller); });
  if (!health) return tl::unexpected(health.error());
  if (elector == nullptr) {
    metrics.set_leader(true);
    controller.run(stop);
  } else {
    work_as_leader(*elector, controller, metrics, stop);
  }
  return {};
}

}  // namespace coxswain
