// A real control plane on loopback, for tests: etcd, kube-apiserver with RBAC, and as much of the
// controller-manager as is asked for. Up in seconds, gone with the object or with the process, however that
// ends. Scheduler and kubelets are fake_nodes.h.
//
// The programs are those of KUBEBUILDER_ASSETS, else of build/control-plane/bin
// (scripts/build_control_plane.sh). With COXSWAIN_TEST_EXISTING_CLUSTER=1 it is the cluster of KUBECONFIG's
// current context instead, which must be one for tests: the TrainingJob kind is installed in it, and
// namespaces come and go. Nothing of such a cluster can be killed (owned() is false).
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/client/rest/http_transport.h"
#include "operator/client/rest/rest_api_client.h"
#include "tests/integration/programs.h"

namespace coxswain::testing {

extern const Resource kNamespaces;
extern const Resource kServiceAccounts;
extern const Resource kCustomResourceDefinitions;

enum class Etcd {
  kCurrent,  // 3.7
  kOld,  // Debian's 3.4, which can't report a watch's progress: an API server on it refuses streaming lists
};

struct ControlPlaneOptions {
  Etcd etcd = Etcd::kCurrent;
  // The controllers that run, as kube-controller-manager's --controllers names them; none, or no such program
  // (envtest's assets have none): no manager runs. Nodes' and pods' own controllers are left out, as
  // fake_nodes.h stands in for what they look at.
  std::vector<std::string> controllers{"garbage-collector-controller", "namespace-controller",
                                       "resourcequota-controller"};
  // Added to the API server's command line; of a flag that is there already, the last one counts.
  std::vector<std::string> api_server_flags{};
  bool audit_log = false;  // each request's metadata, as JSON lines in audit_log()
  bool install_crd = true;
};

// The options that the environment asks for: COXSWAIN_TEST_OLD_ETCD=1.
ControlPlaneOptions options_of_environment();

// Why there can't be a control plane here, as a sentence that says what to do; none: there can.
std::optional<std::string> no_control_plane(const ControlPlaneOptions& options = options_of_environment());

// One thread drives it; clients and kubectl() may be used from any.
class ControlPlane {
 public:
  // Throws std::runtime_error, with the end of the log of what failed.
  explicit ControlPlane(ControlPlaneOptions options = options_of_environment());
  ~ControlPlane();

  bool owned() const { return owned_; }
  const ControlPlaneOptions& options() const { return options_; }

  // --- As the administrator, unless said otherwise
  // Without a limit on requests. The object's own client; safe from any thread.
  ApiClient& api() { return *api_; }
  std::shared_ptr<RestApiClient> connect(RestClientOptions options = unlimited()) const;
  // Any request, such as a subresource that ApiClient doesn't know; `body` null: none. The answer as the API
  // server gave it, or code 0.
  ApiResult<Json> request(const std::string& method, const std::string& target, const Json& body = nullptr);
  // The same, with all that the answer says: a metav1.Status' causes, say.
  HttpResult send(const std::string& method, const std::string& target, const Json& body = nullptr);
  Finished kubectl(std::vector<std::string> arguments, const std::string& input = "") const;
  // The administrator's.
  std::string kubeconfig() const { return kubeconfig_; }
  // A kubeconfig with this bearer token instead, in a file of the control plane's folder; its path.
  std::string kubeconfig_for_token(const std::string& token) const;
  const ClusterAccess& access() const { return access_; }
  static RestClientOptions unlimited();

  // --- What tests need of a cluster
  // A new one, with the ServiceAccount "default" that pods need.
  std::string new_namespace(const std::string& prefix = "test", const Json& labels = Json::object());
  // Of a name that the test needs to know; nothing where it is there already.
  void make_namespace(const std::string& ns, const Json& labels = Json::object());
  // Its TrainingJobs and pods at once, by force; the rest when the namespace controller gets to it.
  void delete_namespace(const std::string& ns);
  // A token of an existing ServiceAccount (TokenRequest). An API server refuses less than 600 s.
  std::string service_account_token(const std::string& ns, const std::string& name,
                                    std::chrono::seconds valid_for = std::chrono::seconds(3600));
  ApiResult<Json> bind_pod(const std::string& ns, const std::string& pod, const std::string& node);

  // --- Faults. The API server and etcd come back on the same ports with the same data.
  void kill_api_server();  // SIGKILL
  void start_api_server();
  void restart_api_server() {
    kill_api_server();
    start_api_server();
  }
  // With other flags from now on.
  void restart_api_server(std::vector<std::string> flags);
  void kill_etcd();
  void start_etcd();
  void kill_controller_manager();
  void start_controller_manager();
  // Forgets all past versions of all objects.
  void compact_etcd();
  // etcd's own API over JSON ("/v3/kv/deleterange"); keys and values in Base64, an object's key is
  // "/registry/PLURAL/NS/NAME". Throws where it refuses.
  Json etcd(const std::string& path, const Json& request);
  bool ready();             // the API server's /readyz says so
  void wait_until_ready();  // throws after a minute

  int api_server_port() const { return api_port_; }
  // Plain HTTP: etcd's JSON gateway, for what only its history tells.
  int etcd_port() const { return etcd_port_; }
  // Of etcd, the API server, the controller-manager: 0 where it isn't running. For resident memory and the
  // like.
  pid_t api_server_pid() const { return api_server_.pid(); }
  std::filesystem::path folder() const { return folder_.path(); }
  std::filesystem::path audit_log() const { return folder_.path() / "audit.log"; }

 private:
  void start_here();
  void use_existing();
  void write_files();
  void connect_admin();
  void install_crd();
  std::vector<std::string> api_server_command() const;

  ControlPlaneOptions options_;
  TemporaryFolder folder_;
  bool owned_ = true;
  int etcd_port_ = 0;
  int etcd_peer_port_ = 0;
  int api_port_ = 0;
  std::string kubeconfig_;
  ClusterAccess access_;
  std::shared_ptr<Credentials> credentials_;
  HttpTransport* transport_ = nullptr;  // api_'s
  std::shared_ptr<RestApiClient> api_;
  mutable std::atomic<int> files_{0};
  std::atomic<int> namespaces_{0};
  Daemon etcd_;
  Daemon api_server_;
  Daemon controller_manager_;
};

}  // namespace coxswain::testing
