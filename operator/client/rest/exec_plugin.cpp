#include "operator/client/rest/exec_plugin.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "operator/api/json_input.h"
#include "operator/api/parse.h"

extern char** environ;

namespace coxswain {

namespace {

using Json = nlohmann::json;
using SteadyClock = std::chrono::steady_clock;

constexpr size_t kMaxOutput = 1 << 20;

tl::unexpected<Failure> plugin_failure(const ExecPlugin& plugin, const std::string& why) {
  return bad_input("exec plugin " + plugin.command + " " + why + "." +
                   (plugin.install_hint.empty() ? "" : " " + plugin.install_hint));
}

std::string text(const Json& object, const char* field) {
  const auto it = object.is_object() ? object.find(field) : object.end();
  return object.is_object() && it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

std::vector<std::string> environment_of(const ExecPlugin& plugin, const std::string& info) {
  std::vector<std::string> result;
  const auto ours = [&](const std::string& entry) {
    const std::string name = entry.substr(0, entry.find('='));
    if (name == "KUBERNETES_EXEC_INFO") return true;
    for (const auto& [own, _] : plugin.env) {
      if (own == name) return true;
    }
    return false;
  };
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!ours(*entry)) result.emplace_back(*entry);
  }
  for (const auto& [name, value] : plugin.env) result.push_back(name + "=" + value);
  result.push_back("KUBERNETES_EXEC_INFO=" + info);
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// 0, or errno. The child gets a process group of its own, so that it can be ended with all it started.
int spawn(const ExecPlugin& plugin, const std::string& info, int output, pid_t& pid) {
  std::vector<std::string> arguments{plugin.command};
  arguments.insert(arguments.end(), plugin.args.begin(), plugin.args.end());
  std::vector<std::string> environment = environment_of(plugin, info);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  // Connections of ours must not live on in it.
  posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  // What this program ignores or blocks is its own affair.
  sigset_t signals;
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  posix_spawnattr_setpgroup(&attributes, 0);
  const int error = posix_spawnp(&pid, plugin.command.c_str(), &files, &attributes,
                                 pointers(arguments).data(), pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

enum class ReadEnd { kComplete, kTooLong, kTimeout };

ReadEnd read_all(int fd, SteadyClock::time_point deadline, std::string& output) {
  std::array<char, 4096> buffer{};
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now());
    if (left.count() <= 0) return ReadEnd::kTimeout;
    pollfd waiting{fd, POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(left.count())) <= 0) continue;
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return ReadEnd::kComplete;
    output.append(buffer.data(), static_cast<size_t>(count));
    if (output.size() > kMaxOutput) return ReadEnd::kTooLong;
  }
}

}  // namespace

std::string exec_info(const ExecPlugin& plugin, const ClusterAccess& access) {
  Json spec = {{"interactive", false}};
  if (plugin.provide_cluster_info) {
    Json cluster = {
        {"server", access.server.scheme + "://" + access.server.authority() + access.server.path}};
    if (!access.tls_server_name.empty()) cluster["tls-server-name"] = access.tls_server_name;
    if (access.skip_verify) cluster["insecure-skip-tls-verify"] = true;
    if (!access.proxy_url.empty()) cluster["proxy-url"] = access.proxy_url;
    spec["cluster"] = std::move(cluster);
  }
  return Json{{"kind", "ExecCredential"}, {"apiVersion", plugin.api_version}, {"spec", spec}}.dump();
}

Result<ExecCredential> parse_exec_credential(const std::string& output, const ExecPlugin& plugin) {
  const Json json = parse_json(output);
  if (text(json, "kind") != "ExecCredential") return plugin_failure(plugin, "printed no ExecCredential");
  if (text(json, "apiVersion") != plugin.api_version) {
    return plugin_failure(plugin,
                          "printed an ExecCredential of another apiVersion than " + plugin.api_version);
  }
  const Json status = json.value("status", Json());
  ExecCredential credential{text(status, "token"), text(status, "clientCertificateData"),
                            text(status, "clientKeyData"), std::nullopt};
  if (credential.certificate_pem.empty() != credential.key_pem.empty()) {
    return plugin_failure(plugin, "printed only one of clientCertificateData and clientKeyData");
  }
  if (credential.token.empty() && credential.certificate_pem.empty()) {
    return plugin_failure(plugin, "printed neither a token nor a client certificate");
  }
  if (const std::string expiry = text(status, "expirationTimestamp"); !expiry.empty()) {
    credential.expires_at = parse_time(expiry);
    if (!credential.expires_at)
      return plugin_failure(plugin, "printed an expirationTimestamp that is no time");
  }
  return credential;
}

Result<std::string> run_exec_plugin(const ExecPlugin& plugin, const std::string& info,
                                    std::chrono::milliseconds timeout) {
  const auto deadline = SteadyClock::now() + timeout;
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return plugin_failure(plugin, "can't be given a pipe");
  pid_t pid = 0;
  const int error = spawn(plugin, info, pipe[1], pid);
  ::close(pipe[1]);
  if (error != 0) {
    ::close(pipe[0]);
    return plugin_failure(plugin, std::string("can't be started: ") + std::strerror(error));
  }
  std::string output;
  const ReadEnd end = read_all(pipe[0], deadline, output);
  ::close(pipe[0]);
  if (end != ReadEnd::kComplete) ::kill(-pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (end == ReadEnd::kTooLong) return plugin_failure(plugin, "printed more than 1 MiB and was ended");
  if (end == ReadEnd::kTimeout) {
    return plugin_failure(plugin,
                          "was not done after " + std::to_string(timeout.count()) + " ms and was ended");
  }
  if (WIFSIGNALED(status))
    return plugin_failure(plugin, "ended by signal " + std::to_string(WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0) {
    return plugin_failure(plugin, "failed with exit code " + std::to_string(WEXITSTATUS(status)));
  }
  return output;
}

}  // namespace coxswain
