// How one API server is reached and as whom: what a kubeconfig's context or a pod's service account says.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "contract/result.h"
#include "operator/client/rest/url.h"
#include "runtime/config/environment.h"

namespace coxswain {

// PEM text, inline or in a file; inline wins. Files are read at each use, since they are rotated in place.
struct PemSource {
  std::string data;
  std::filesystem::path file;

  bool empty() const { return data.empty() && file.empty(); }
  // `field` names the source for the error. "" where the source is empty.
  Result<std::string> read(const std::string& field) const;
};

// A credential plugin (client.authentication.k8s.io).
struct ExecPlugin {
  std::string api_version;
  std::string command;  // looked up in PATH unless it holds a slash
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;  // added to ours
  std::string install_hint;
  bool provide_cluster_info = false;
};

struct Impersonation {
  std::string user;
  std::string uid;
  std::vector<std::string> groups;
};

struct ClusterAccess {
  std::string source;  // for errors: "FILE, context dev", "the pod's service account"
  std::string default_namespace;

  Url server;
  PemSource ca;  // empty: the system's CAs
  bool skip_verify = false;
  std::string tls_server_name;  // "": the server's host
  std::string proxy_url;
  bool compression = true;

  // At most one of client certificate and the others decides; the server sees all that are given.
  PemSource client_certificate;
  PemSource client_key;
  std::string token;
  std::filesystem::path token_file;  // wins over token; re-read each minute
  std::string username;
  std::string password;
  std::optional<ExecPlugin> exec;
  Impersonation impersonate;
};

// The service account of the pod that we run in: KUBERNETES_SERVICE_HOST and _PORT, and the files that the
// kubelet projects.
Result<ClusterAccess> in_cluster_access(
    const EnvironmentLookup& environment,
    const std::filesystem::path& folder = "/var/run/secrets/kubernetes.io/serviceaccount");

struct AccessChoice {
  std::filesystem::path kubeconfig;  // --kubeconfig
  std::string context;               // --context; "": the current one
};

// In this order: --kubeconfig; KUBECONFIG; the pod's service account; ~/.kube/config. --context alone passes
// the service account over.
Result<ClusterAccess> find_cluster_access(const AccessChoice& choice, const EnvironmentLookup& environment);

}  // namespace coxswain
