#include "tests/integration/operator_process.h"

#include <httplib.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace coxswain::testing {

namespace {

constexpr char kLoopback[] = "127.0.0.1";

std::string address(int port) {
  return std::string(kLoopback) + ":" + std::to_string(port);
}

}  // namespace

std::string operator_program() {
  return COXSWAIN_OPERATOR_PROGRAM;
}

OperatorProcess::OperatorProcess(OperatorProcessOptions options)
    : options_(std::move(options)), metrics_port_(pick_port()), health_port_(pick_port()) {}

void OperatorProcess::start() {
  process_.kill();
  Command command{{options_.program.empty() ? operator_program() : options_.program}, options_.env};
  command.argv.insert(command.argv.end(), options_.flags.begin(), options_.flags.end());
  for (const auto& [flag, value] : {std::pair<std::string, std::string>{"--kubeconfig=", options_.kubeconfig},
                                    {"--leader-elect=", "false"},
                                    {"--metrics-bind-address=", address(metrics_port_)},
                                    {"--health-bind-address=", address(health_port_)}}) {
    const bool given = std::ranges::any_of(options_.flags,
                                           [&](const std::string& other) { return other.starts_with(flag); });
    if (!given) command.argv.push_back(flag + value);
  }
  process_ = Daemon(std::move(command), log_file());
}

bool OperatorProcess::wait_until_ready(std::chrono::milliseconds bound) {
  eventually([&] { return !running() || is_ready(); }, bound);
  return running() && is_ready();
}

void OperatorProcess::start_and_wait() {
  start();
  if (wait_until_ready()) return;
  throw std::runtime_error(std::string("coxswain-operator ") + (running() ? "is not ready" : "ended") +
                           ":\n" + tail(log_file()));
}

std::string OperatorProcess::page(int port, const std::string& path) const {
  httplib::Client client(kLoopback, port);
  const auto answer = client.Get(path);
  return answer && answer->status == 200 ? answer->body : "";
}

bool OperatorProcess::is_ready() {
  return !page(health_port_, "/readyz").empty();
}

std::string OperatorProcess::metrics() {
  return page(metrics_port_, "/metrics");
}

std::string OperatorProcess::log() const {
  std::ostringstream text;
  text << std::ifstream(log_file()).rdbuf();
  return text.str();
}

}  // namespace coxswain::testing
