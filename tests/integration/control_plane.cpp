#include "tests/integration/control_plane.h"

#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "operator/api/parse.h"
#include "operator/client/rest/api_answer.h"
#include "operator/client/rest/api_request.h"
#include "operator/client/rest/cpprest_transport.h"
#include "tests/integration/control_plane_files.h"

namespace coxswain::testing {

const Resource kNamespaces{"", "v1", "namespaces", "Namespace"};
const Resource kServiceAccounts{"", "v1", "serviceaccounts", "ServiceAccount"};
const Resource kCustomResourceDefinitions{"apiextensions.k8s.io", "v1", "customresourcedefinitions",
                                          "CustomResourceDefinition"};

namespace {

using coxswain::resources::kPods;
using coxswain::resources::kTrainingJobs;

constexpr auto kStartLimit = std::chrono::seconds(60);

bool uses_existing() {
  return process_environment()("COXSWAIN_TEST_EXISTING_CLUSTER").value_or("") == "1";
}

bool is_program(const std::string& name) {
  return ::access(program_path(name).c_str(), X_OK) == 0;
}

[[noreturn]] void give_up(const std::string& what, const ApiError& error) {
  throw std::runtime_error(what + ": " + std::to_string(error.code) + " " + error.message);
}

std::string local(const std::string& scheme, int port) {
  return scheme + "://127.0.0.1:" + std::to_string(port);
}

ClusterAccess read_access(const std::filesystem::path& kubeconfig) {
  auto access = find_cluster_access({.kubeconfig = kubeconfig, .context = ""}, process_environment());
  if (!access) throw std::runtime_error(access.error().message);
  return std::move(*access);
}

bool established(const Json& definition) {
  for (const Json& condition : definition.value("/status/conditions"_json_pointer, Json::array())) {
    if (condition["type"] == "Established") return condition["status"] == "True";
  }
  return false;
}

}  // namespace

ControlPlaneOptions options_of_environment() {
  ControlPlaneOptions options;
  if (process_environment()("COXSWAIN_TEST_OLD_ETCD").value_or("") == "1") options.etcd = Etcd::kOld;
  return options;
}

std::optional<std::string> no_control_plane(const ControlPlaneOptions& options) {
  if (uses_existing()) return std::nullopt;
  for (const char* name : {options.etcd == Etcd::kOld ? "etcd-3.4" : "etcd", "kube-apiserver", "kubectl"}) {
    if (!is_program(name)) {
      return "no control plane here: there is no program " + program_path(name) +
             "; run scripts/build_control_plane.sh, or set KUBEBUILDER_ASSETS";
    }
  }
  return std::nullopt;
}

ControlPlane::ControlPlane(ControlPlaneOptions options) : options_(std::move(options)) {
  if (uses_existing()) {
    use_existing();
  } else {
    if (const auto missing = no_control_plane(options_)) throw std::runtime_error(*missing);
    start_here();
  }
  if (options_.install_crd) install_crd();
  // Last: its garbage collector learns of new kinds only each half a minute.
  start_controller_manager();
}

ControlPlane::~ControlPlane() = default;

void ControlPlane::use_existing() {
  owned_ = false;
  kubeconfig_ = process_environment()("KUBECONFIG").value_or("");
  if (kubeconfig_.empty() || kubeconfig_.find(':') != std::string::npos) {
    throw std::runtime_error(
        "COXSWAIN_TEST_EXISTING_CLUSTER=1 needs KUBECONFIG to be the path of one kubeconfig file");
  }
  access_ = read_access(kubeconfig_);
  connect_admin();
}

void ControlPlane::start_here() {
  if (!is_program("kube-controller-manager")) options_.controllers.clear();
  etcd_port_ = pick_port();
  etcd_peer_port_ = pick_port();
  api_port_ = pick_port();
  write_files();
  kubeconfig_ = folder_.path() / "admin.kubeconfig";
  access_ = read_access(kubeconfig_);
  connect_admin();
  start_etcd();
  start_api_server();
}

void ControlPlane::write_files() {
  const Pki pki = make_pki();
  folder_.write("ca.crt", pki.authority.ca_pem());
  folder_.write("api-server.crt", pki.api_server.certificate_pem);
  folder_.write("api-server.key", pki.api_server.key_pem);
  folder_.write("service-accounts.crt", pki.service_accounts.certificate_pem);
  folder_.write("service-accounts.key", pki.service_accounts.key_pem);
  folder_.write("admin.kubeconfig", kubeconfig_text(local("https", api_port_), pki.authority.ca_pem(),
                                                    {.certificate = pki.admin}));
  folder_.write("audit-policy.json", Json{{"apiVersion", "audit.k8s.io/v1"},
                                          {"kind", "Policy"},
                                          {"omitStages", {"RequestReceived"}},
                                          {"rules", Json::array({{{"level", "Metadata"}}})}}
                                         .dump());
}

// --- Clients

RestClientOptions ControlPlane::unlimited() {
  RestClientOptions options;
  options.queries_per_second = 0;
  options.user_agent = "coxswain-tests";
  return options;
}

void ControlPlane::connect_admin() {
  credentials_ = std::make_shared<Credentials>(access_);
  TransportSettings settings;
  settings.server = access_.server;
  settings.tls.verify = !access_.skip_verify;
  settings.tls.server_name = access_.tls_server_name.empty() ? access_.server.host : access_.tls_server_name;
  settings.tls.material = [credentials = credentials_] { return credentials->tls_material(); };
  auto transport = make_cpprest_transport(std::move(settings));
  transport_ = transport.get();
  api_ = std::make_shared<RestApiClient>(std::move(transport), credentials_, unlimited(),
                                         RestClientTiming::real());
}

std::shared_ptr<RestApiClient> ControlPlane::connect(RestClientOptions options) const {
  auto client = RestApiClient::connect(access_, std::move(options), process_environment());
  if (!client) throw std::runtime_error(client.error().message);
  return std::move(*client);
}

HttpResult ControlPlane::send(const std::string& method, const std::string& target, const Json& body) {
  HttpRequest request{method, target, "application/json", "", "", {}};
  if (!body.is_null()) {
    request.content_type = "application/json";
    request.body = body.dump();
  }
  auto headers = credentials_->headers();
  if (!headers) {
    return tl::unexpected<HttpFailure>({HttpFailure::Kind::kUntrusted, headers.error().message});
  }
  request.headers = std::move(*headers);
  return transport_->send(request, std::chrono::seconds(30));
}

ApiResult<Json> ControlPlane::request(const std::string& method, const std::string& target,
                                      const Json& body) {
  return api_answer::object(send(method, target, body));
}

Finished ControlPlane::kubectl(std::vector<std::string> arguments, const std::string& input) const {
  arguments.insert(arguments.begin(), program_path("kubectl"));
  // HOME: where it keeps what it has learned of the API.
  return run_program({std::move(arguments), {{"KUBECONFIG", kubeconfig_}, {"HOME", folder_.path()}}}, input);
}

std::string ControlPlane::kubeconfig_for_token(const std::string& token) const {
  const auto ca = access_.ca.read("certificate-authority");
  if (!ca) throw std::runtime_error(ca.error().message);
  return folder_.write(
      "token-" + std::to_string(files_++) + ".kubeconfig",
      kubeconfig_text(access_.server.scheme + "://" + access_.server.authority() + access_.server.path, *ca,
                      {.token = token}));
}

// --- What tests need

std::string ControlPlane::new_namespace(const std::string& prefix, const Json& labels) {
  const std::string ns = prefix + "-" + std::to_string(::getpid()) + "-" + std::to_string(namespaces_++);
  make_namespace(ns, labels);
  return ns;
}

void ControlPlane::make_namespace(const std::string& ns, const Json& labels) {
  const auto created = api_->create(kNamespaces, "", {{"metadata", {{"name", ns}, {"labels", labels}}}}, {});
  if (!created && !created.error().already_exists()) give_up("namespace " + ns, created.error());
  // Its controller takes seconds to find the API server again after a restart.
  const auto account = api_->create(kServiceAccounts, ns, {{"metadata", {{"name", "default"}}}}, {});
  if (!account && !account.error().already_exists()) {
    give_up("ServiceAccount default of " + ns, account.error());
  }
}

void ControlPlane::delete_namespace(const std::string& ns) {
  const Json now = {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"gracePeriodSeconds", 0}};
  request("DELETE", api_request::path(kTrainingJobs, ns), now);
  request("DELETE", api_request::path(kPods, ns), now);
  api_->remove(kNamespaces, "", ns, {});
}

std::string ControlPlane::service_account_token(const std::string& ns, const std::string& name,
                                                std::chrono::seconds valid_for) {
  const auto answer = request("POST", api_request::path(kServiceAccounts, ns, name, "token"),
                              {{"apiVersion", "authentication.k8s.io/v1"},
                               {"kind", "TokenRequest"},
                               {"spec", {{"expirationSeconds", valid_for.count()}}}});
  if (!answer) give_up("token of ServiceAccount " + ns + "/" + name, answer.error());
  return answer->at("/status/token"_json_pointer);
}

ApiResult<Json> ControlPlane::bind_pod(const std::string& ns, const std::string& pod,
                                       const std::string& node) {
  return request("POST", api_request::path(kPods, ns, pod, "binding"),
                 {{"apiVersion", "v1"},
                  {"kind", "Binding"},
                  {"metadata", {{"name", pod}}},
                  {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}}}});
}

void ControlPlane::install_crd() {
  const auto documents = load_yaml_file("crds/trainingjob.yaml");
  if (!documents) throw std::runtime_error(documents.error().message);
  Json definition = documents->front();
  const std::string name = definition["metadata"]["name"];
  auto stored = api_->create(kCustomResourceDefinitions, "", definition, {});
  if (!stored && stored.error().already_exists()) {
    stored = api_->merge_patch(kCustomResourceDefinitions, "", name, {{"spec", definition["spec"]}}, {});
  }
  if (!stored) give_up(name, stored.error());
  const bool served = eventually([&] {
    const auto now = api_->get(kCustomResourceDefinitions, "", name);
    return now && established(*now) && api_->list(kTrainingJobs, "", {}).has_value();
  });
  if (!served) throw std::runtime_error(name + " is not Established after a minute");
}

}  // namespace coxswain::testing
