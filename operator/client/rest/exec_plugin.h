// Credential plugins: programs that print an ExecCredential.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "contract/result.h"
#include "operator/api/training_job.h"
#include "operator/client/rest/cluster_access.h"

namespace coxswain {

struct ExecCredential {
  std::string token;
  std::string certificate_pem;
  std::string key_pem;
  std::optional<TimePoint> expires_at;  // none: good until the server says 401
};

// The KUBERNETES_EXEC_INFO that a plugin is given.
std::string exec_info(const ExecPlugin& plugin, const ClusterAccess& access);

// What a plugin printed. Errors never quote it.
Result<ExecCredential> parse_exec_credential(const std::string& output, const ExecPlugin& plugin);

// Runs the plugin without a shell and returns what it printed; its standard error is ours, its standard input
// empty. An error when it can't be started, fails, prints more than 1 MiB or isn't done by `timeout`; it is
// killed then.
Result<std::string> run_exec_plugin(const ExecPlugin& plugin, const std::string& info,
                                    std::chrono::milliseconds timeout);

}  // namespace coxswain
