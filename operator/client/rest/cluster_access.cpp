#include "operator/client/rest/cluster_access.h"

#include <fstream>
#include <sstream>

#include "operator/client/rest/kubeconfig.h"

namespace coxswain {

namespace {

Result<std::string> read_file(const std::filesystem::path& file, const std::string& field) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in.is_open() || text.fail()) {
    return bad_input(field + ": " + file.string() +
                     " can't be read; check that it exists and who may read it.");
  }
  return text.str();
}

std::vector<std::filesystem::path> split_paths(const std::string& list) {
  std::vector<std::filesystem::path> paths;
  std::istringstream entries(list);
  for (std::string entry; std::getline(entries, entry, ':');) {
    if (!entry.empty()) paths.emplace_back(entry);
  }
  return paths;
}

}  // namespace

Result<std::string> PemSource::read(const std::string& field) const {
  if (!data.empty() || file.empty()) return data;
  return read_file(file, field);
}

Result<ClusterAccess> in_cluster_access(const EnvironmentLookup& environment,
                                        const std::filesystem::path& folder) {
  const std::string host = environment("KUBERNETES_SERVICE_HOST").value_or("");
  const std::string port = environment("KUBERNETES_SERVICE_PORT").value_or("");
  if (host.empty() || port.empty()) {
    return bad_input(
        "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not both set, as they are in a pod; give a "
        "kubeconfig by --kubeconfig or KUBECONFIG.");
  }
  auto server = parse_url("https://" + (is_ipv6_address(host) ? "[" + host + "]" : host) + ":" + port,
                          "KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT");
  if (!server) return tl::unexpected(server.error());
  ClusterAccess access;
  access.source = "the pod's service account";
  access.server = std::move(*server);
  access.ca.file = folder / "ca.crt";
  access.token_file = folder / "token";
  for (const auto& file : {access.ca.file, access.token_file}) {
    if (auto text = read_file(file, "service account"); !text) return tl::unexpected(text.error());
  }
  access.default_namespace = read_file(folder / "namespace", "service account").value_or("default");
  return access;
}

Result<ClusterAccess> find_cluster_access(const AccessChoice& choice, const EnvironmentLookup& environment) {
  const auto from_files = [&](const std::vector<std::filesystem::path>& files, bool must_exist) {
    return load_kubeconfig(files, must_exist).and_then([&](const Kubeconfig& config) {
      return select_context(config, choice.context);
    });
  };
  if (!choice.kubeconfig.empty()) return from_files({choice.kubeconfig}, true);
  if (const auto files = split_paths(environment("KUBECONFIG").value_or("")); !files.empty()) {
    return from_files(files, false);
  }
  const bool in_pod = environment("KUBERNETES_SERVICE_HOST").has_value();
  if (in_pod && choice.context.empty()) return in_cluster_access(environment);
  const std::string home = environment("HOME").value_or("");
  const std::filesystem::path file = std::filesystem::path(home) / ".kube" / "config";
  if (!home.empty() && std::filesystem::exists(file)) return from_files({file}, true);
  return bad_input(
      "No cluster is configured: there is no --kubeconfig, no KUBECONFIG, no ~/.kube/config, and this is no "
      "pod "
      "of a cluster; give one of them.");
}

}  // namespace coxswain
