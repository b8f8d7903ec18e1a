#include "operator/manager/options.h"

#include <algorithm>
#include <cctype>
#include <CLI/CLI.hpp>
#include <map>
#include <sstream>

#include "contract/contract.h"

namespace coxswain {

namespace {

constexpr char kDescription[] =
    "The Coxswain operator: makes the pods of TrainingJobs, restarts their gangs, and tells in their status "
    "how training goes.";

constexpr char kFooter[] =
    "In a pod it needs no flags: it uses the pod's service account. Elsewhere it uses --kubeconfig, "
    "KUBECONFIG "
    "or\n~/.kube/config. Each flag can also be set by the variable shown with it.\n\n"
    "Durations: 500ms, 15s, 2m, 1h. Addresses: HOST:PORT, [IPV6]:PORT or :PORT for all addresses; 0 switches "
    "it off.\n\n"
    "SIGTERM: it finishes the passes that it has begun, hands over the lease and ends; a second one ends it "
    "at "
    "once.\n\n"
    "Exit status: 0 asked to stop, 1 lost the lease (its successor is working; to be started again), 2 a "
    "mistake "
    "in\nflags or kubeconfig, 70 an internal failure.";

const std::map<std::string, int64_t> kUnits = {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}};

// As CLI11 wants it: "" or what is wrong; the text becomes milliseconds.
std::string duration_to_milliseconds(std::string& text) {
  const size_t unit_at = text.find_first_not_of("0123456789");
  const auto unit = unit_at == std::string::npos ? kUnits.end() : kUnits.find(text.substr(unit_at));
  if (unit_at == 0 || unit_at > 9 || unit == kUnits.end()) {
    return "\"" + text + "\" is no duration; write a whole number and its unit, as in 500ms, 15s, 2m, 1h";
  }
  text = std::to_string(std::stoll(text.substr(0, unit_at)) * unit->second);
  return "";
}

std::string check_namespace(const std::string& name) {
  const auto allowed = [](unsigned char c) { return std::islower(c) || std::isdigit(c) || c == '-'; };
  const bool good = !name.empty() && name.size() <= 63 && std::ranges::all_of(name, allowed) &&
                    name.front() != '-' && name.back() != '-';
  return good ? ""
              : "\"" + name +
                    "\" is no name of a namespace; names have 1 to 63 small letters, digits or dashes, with "
                    "no "
                    "dash at either end";
}

// A person's flag --kube-api-qps → COXSWAIN_OPERATOR_KUBE_API_QPS.
std::string variable_of(std::string flag) {
  std::ranges::transform(flag, flag.begin(),
                         [](unsigned char c) { return c == '-' ? '_' : static_cast<char>(std::toupper(c)); });
  return "COXSWAIN_OPERATOR_" + flag;
}

class Flags {
 public:
  explicit Flags(CLI::App& app) : app_(app) {}

  void group(std::string name) { group_ = std::move(name); }

  template <typename T>
  CLI::Option* option(const std::string& name, T& value, const std::string& help, const std::string& type) {
    auto* option = app_.add_option("--" + name, value, help)->type_name(type);
    if constexpr (!std::is_same_v<T, std::vector<std::string>>) option->capture_default_str();
    return finish(name, option);
  }

  void flag(const std::string& name, bool& value, const std::string& help) {
    // A default that is true shows as --name=true; --name=false switches it off.
    auto* option = app_.add_flag("--" + name, value, help)
                       ->type_name("true|false")
                       ->default_str(value ? "true" : "false");
    finish(name, option);
  }

  void duration(const std::string& name, std::chrono::milliseconds& value, const std::string& help,
                std::chrono::milliseconds least) {
    auto take = [&value](const std::string& text) {
      value = std::chrono::milliseconds(std::stoll(text));
      return true;
    };
    auto* option = app_.add_option_function<std::string>(
        "--" + name, [take](const std::string& text) { take(text); }, help);
    option->type_name("DURATION")->default_str(shown(value));
    option->transform(CLI::Validator(duration_to_milliseconds, "", ""));
    option->check(CLI::Validator(
        [least](std::string& text) {
          if (std::stoll(text) >= least.count()) return std::string();
          return "must be " + shown(least) + " or more, but is " + text + "ms";
        },
        ""));
    finish(name, option);
  }

  static std::string shown(std::chrono::milliseconds duration) {
    const int64_t ms = duration.count();
    return ms % 1000 == 0 ? std::to_string(ms / 1000) + "s" : std::to_string(ms) + "ms";
  }

 private:
  CLI::Option* finish(const std::string& name, CLI::Option* option) {
    return option->envname(variable_of(name))->group(group_);
  }

  CLI::App& app_;
  std::string group_;
};

void add_cluster_flags(Flags& flags, OperatorOptions& options) {
  flags.group("The cluster");
  flags.option("kubeconfig", options.access.kubeconfig, "How to reach the cluster from outside", "FILE");
  flags.option("context", options.access.context, "The kubeconfig's context; else its current one", "NAME");
  flags
      .option("kube-api-qps", options.queries_per_second, "Requests to the API server each second, at most",
              "NUMBER")
      ->check(CLI::Range(0.1, 1e6));
  flags.option("kube-api-burst", options.burst, "Requests at once, after a quiet while", "COUNT")
      ->check(CLI::Range(1, 1'000'000));
}

void add_work_flags(Flags& flags, OperatorOptions& options) {
  flags.group("What it works on");
  flags
      .option(
          "namespaces", options.namespaces,
          "Only TrainingJobs of these namespaces are seen, by commas; else those of all. Then Roles in these "
          "namespaces are enough",
          "NAMES")
      ->delimiter(',')
      ->check(CLI::Validator([](std::string& name) { return check_namespace(name); }, ""));
  flags.flag(
      "watch-nodes", options.watch_nodes,
      "See nodes that are lost (which takes the right to read nodes in the whole cluster). Without it a "
      "lost node is noticed when Kubernetes evicts its pods, minutes later");
  flags.option("workers", options.workers, "Jobs worked on at a time", "COUNT")->check(CLI::Range(1, 1000));
  flags
      .option("parallel-writes", options.parallel_writes, "Pods of one job created or deleted at a time",
              "COUNT")
      ->check(CLI::Range(1, 1000));
  flags.option(
      "runtime-image", options.runtime_image,
      "The image of jobs with spec.config that name none; kept in each job's status once it has begun",
      "IMAGE");
  flags.duration("progress-interval", options.progress_interval,
                 "How often a running job is asked how far it is, and its status written at most",
                 std::chrono::seconds(1));
  flags.duration("drain-timeout", options.drain_timeout,
                 "When asked to stop: how long jobs that are due are still worked on",
                 std::chrono::milliseconds(0));
}

void add_election_flags(Flags& flags, LeaderElectionFlags& election) {
  flags.group("Leader election");
  flags.flag("leader-elect", election.enabled,
             "Work only while holding a lease, so that of several operators one writes");
  flags
      .option("leader-election-namespace", election.namespace_name,
              "Where the lease lies; else the namespace of the operator's credentials", "NAME")
      ->check(CLI::Validator([](std::string& name) { return check_namespace(name); }, ""));
  flags.option("leader-election-id", election.lease_name, "The name of the lease", "NAME")
      ->check(CLI::Validator([](std::string& name) { return check_namespace(name); }, ""));
  flags.duration("leader-election-lease-duration", election.lease_duration,
                 "How long others wait for a leader that is silent", std::chrono::seconds(1));
  flags.duration("leader-election-renew-deadline", election.renew_deadline,
                 "How long the leader tries to renew before it ends", std::chrono::milliseconds(100));
  flags.duration("leader-election-retry-period", election.retry_period, "Between tries",
                 std::chrono::milliseconds(50));
}

void add_serving_flags(Flags& flags, OperatorOptions& options) {
  flags.group("What it shows");
  flags.option("metrics-bind-address", options.metrics_address, "Where /metrics is served, for Prometheus",
               "ADDRESS");
  flags.option("health-bind-address", options.health_address, "Where /healthz and /readyz are served",
               "ADDRESS");
  flags.option("log-level", options.log_level, "What is logged", "LEVEL")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}));
  flags.option("log-format", options.log_format, "text for people, json for collectors", "FORMAT")
      ->check(CLI::IsMember({"text", "json"}));
}

}  // namespace

std::variant<OperatorOptions, Goodbye> parse_operator_options(int argc, const char* const* argv) {
  OperatorOptions options;
  options.runtime_image = std::string("coxswain-runtime:") + COXSWAIN_VERSION;
  CLI::App app(kDescription, "coxswain-operator");
  app.footer(kFooter);
  app.set_version_flag("--version", std::string("coxswain-operator ") + COXSWAIN_VERSION);
  Flags flags(app);
  add_cluster_flags(flags, options);
  add_work_flags(flags, options);
  add_election_flags(flags, options.leader_election);
  add_serving_flags(flags, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const bool asked = app.exit(error, out, err) == 0;
    return Goodbye{asked ? 0 : static_cast<int>(contract::ExitCode::kBadInput), out.str(), err.str()};
  }
  std::ranges::sort(options.namespaces);
  const auto [first, last] = std::ranges::unique(options.namespaces);
  options.namespaces.erase(first, last);
  return options;
}

}  // namespace coxswain
