// The program coxswain-operator as a child process of a test.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/integration/programs.h"

namespace coxswain::testing {

struct OperatorProcessOptions {
  std::string kubeconfig{};
  // With --kubeconfig, addresses on loopback at ports that are free and --leader-elect=false, each unless it
  // is among these.
  std::vector<std::string> flags{};
  std::map<std::string, std::string> env{};  // as in Command
  std::string program{};                     // "": the one that was built with the tests
};

// Ends with the object, by SIGKILL, and with the test binary, however that ends. Not thread-safe.
class OperatorProcess {
 public:
  // Starts nothing.
  explicit OperatorProcess(OperatorProcessOptions options);

  // A fresh process, on the same ports; what ran before is killed. Returns before it is ready; throws where
  // the program can't be started.
  void start();
  // Until /readyz says so: its caches are filled. False where it ended or the bound has passed.
  bool wait_until_ready(std::chrono::milliseconds bound = std::chrono::seconds(60));
  // start() and wait_until_ready(); throws std::runtime_error with the end of the log.
  void start_and_wait();

  void kill() { process_.kill(); }             // SIGKILL; returns when it is gone
  int terminate() { return process_.stop(); }  // SIGTERM; the exit code, or -signal
  bool running() { return process_.running(); }
  pid_t pid() const { return process_.pid(); }  // 0: none

  bool is_ready();
  std::string metrics();  // what /metrics answers; "": nothing
  int metrics_port() const { return metrics_port_; }
  int health_port() const { return health_port_; }
  // Standard output and error of all processes started by this object.
  std::string log() const;
  std::filesystem::path log_file() const { return folder_.path() / "coxswain-operator.log"; }

 private:
  std::string page(int port, const std::string& path) const;

  const OperatorProcessOptions options_;
  TemporaryFolder folder_;
  const int metrics_port_;
  const int health_port_;
  Daemon process_;
};

// The program that was built with the tests.
std::string operator_program();

}  // namespace coxswain::testing
