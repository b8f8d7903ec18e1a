// The processes of a control plane: how they are started, killed, and found ready.
#include <httplib.h>

#include <stdexcept>

#include "tests/integration/control_plane.h"
#include "tests/integration/control_plane_files.h"

namespace coxswain::testing {

namespace {

std::string local(const std::string& scheme, int port) {
  return scheme + "://127.0.0.1:" + std::to_string(port);
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

}  // namespace

void ControlPlane::start_etcd() {
  const std::string client = local("http", etcd_port_);
  const std::string peer = local("http", etcd_peer_port_);
  etcd_ = Daemon(
      {{program_path(options_.etcd == Etcd::kOld ? "etcd-3.4" : "etcd"), "--name=test",
        "--data-dir=" + (folder_.path() / "etcd").string(), "--listen-client-urls=" + client,
        "--advertise-client-urls=" + client, "--listen-peer-urls=" + peer,
        "--initial-advertise-peer-urls=" + peer, "--initial-cluster=test=" + peer, "--unsafe-no-fsync"}},
      folder_.path() / "etcd.log");
}

std::vector<std::string> ControlPlane::api_server_command() const {
  const auto file = [&](const char* name) { return (folder_.path() / name).string(); };
  std::vector<std::string> command{program_path("kube-apiserver"),
                                   "--etcd-servers=" + local("http", etcd_port_),
                                   "--bind-address=127.0.0.1",
                                   "--advertise-address=127.0.0.1",
                                   "--endpoint-reconciler-type=none",
                                   "--secure-port=" + std::to_string(api_port_),
                                   "--tls-cert-file=" + file("api-server.crt"),
                                   "--tls-private-key-file=" + file("api-server.key"),
                                   "--client-ca-file=" + file("ca.crt"),
                                   "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
                                   "--service-account-key-file=" + file("service-accounts.crt"),
                                   "--service-account-signing-key-file=" + file("service-accounts.key"),
                                   "--service-cluster-ip-range=10.96.0.0/16",
                                   "--authorization-mode=RBAC",
                                   "--allow-privileged=true",
                                   "--profiling=false"};
  if (options_.audit_log) {
    command.push_back("--audit-policy-file=" + file("audit-policy.yaml"));
    command.push_back("--audit-log-path=" + audit_log().string());
  }
  command.insert(command.end(), options_.api_server_flags.begin(), options_.api_server_flags.end());
  return command;
}

void ControlPlane::start_api_server() {
  api_server_ = Daemon({api_server_command()}, folder_.path() / "kube-apiserver.log");
  wait_until_ready();
}

void ControlPlane::restart_api_server(std::vector<std::string> flags) {
  options_.api_server_flags = std::move(flags);
  restart_api_server();
}

void ControlPlane::start_controller_manager() {
  if (!owned_ || options_.controllers.empty()) return;
  controller_manager_ = Daemon({{program_path("kube-controller-manager"), "--kubeconfig=" + kubeconfig_,
                                 "--controllers=" + joined(options_.controllers), "--leader-elect=false",
                                 "--secure-port=0", "--kube-api-qps=300", "--kube-api-burst=600",
                                 "--concurrent-namespace-syncs=20", "--profiling=false"}},
                               folder_.path() / "kube-controller-manager.log");
}

void ControlPlane::kill_api_server() {
  api_server_.kill();
}

void ControlPlane::kill_etcd() {
  etcd_.kill();
}

void ControlPlane::kill_controller_manager() {
  controller_manager_.kill();
}

bool ControlPlane::ready() {
  const auto headers = credentials_->headers();
  const HttpRequest request{"GET", "/readyz", "*/*", "", "", headers.value_or(Credentials::Headers{})};
  const auto answer = transport_->send(request, std::chrono::seconds(10));
  return answer && answer->status == 200;
}

void ControlPlane::wait_until_ready() {
  const bool up = eventually([&] {
    if (owned_ && (!etcd_.running() || !api_server_.running())) return true;
    return ready();
  });
  const std::string logs = tail(folder_.path() / "etcd.log", 5) + tail(folder_.path() / "kube-apiserver.log");
  if (owned_ && !etcd_.running()) throw std::runtime_error("etcd ended:\n" + logs);
  if (owned_ && !api_server_.running()) throw std::runtime_error("kube-apiserver ended:\n" + logs);
  if (!up) throw std::runtime_error("the API server is not ready after a minute:\n" + logs);
  // Connections to the one before are no good, and a POST on one would not be sent again.
  transport_->reconnect();
}

void ControlPlane::compact_etcd() {
  httplib::Client etcd("127.0.0.1", etcd_port_);
  const auto now = etcd.Post("/v3/kv/range", R"({"key": "AA==", "limit": "1"})", "application/json");
  if (!now) throw std::runtime_error("etcd does not answer");
  const std::string revision = Json::parse(now->body).at("header").at("revision");
  const auto done = etcd.Post("/v3/kv/compaction", Json{{"revision", revision}, {"physical", true}}.dump(),
                              "application/json");
  if (!done || done->status != 200) {
    throw std::runtime_error("etcd does not compact: " + (done ? done->body : "no answer"));
  }
}

}  // namespace coxswain::testing
