#include "tests/integration/control_plane_files.h"

#include <unistd.h>

#include <filesystem>

#include "operator/client/rest/base64.h"

namespace coxswain::testing {

namespace {

std::filesystem::path built() {
  const auto source = process_environment()("COXSWAIN_SOURCE_DIR");
  return std::filesystem::path(source.value_or(std::filesystem::current_path())) / "build" / "control-plane";
}

}  // namespace

std::string program_path(const std::string& name) {
  if (name == "etcd-3.4") return built() / "etcd-3.4" / "etcd";
  if (const auto assets = process_environment()("KUBEBUILDER_ASSETS"); assets && !assets->empty()) {
    const std::filesystem::path given = std::filesystem::path(*assets) / name;
    if (::access(given.c_str(), X_OK) == 0) return given;
  }
  return built() / "bin" / name;
}

Pki make_pki() {
  constexpr auto kDay = std::chrono::hours(24);
  Pki pki;
  pki.api_server = pki.authority.issue({"kube-apiserver", "DNS:localhost,IP:127.0.0.1", kDay});
  pki.admin = pki.authority.issue({"admin", "", kDay, "system:masters"});
  pki.service_accounts = pki.authority.issue({"service accounts", "", kDay});
  return pki;
}

std::string kubeconfig_text(const std::string& server, const std::string& ca_pem,
                            const KubeconfigUser& user) {
  Json identity = Json::object();
  if (!user.token.empty()) {
    identity["token"] = user.token;
  } else {
    identity = {{"client-certificate-data", encode_base64(user.certificate.certificate_pem)},
                {"client-key-data", encode_base64(user.certificate.key_pem)}};
  }
  Json cluster = {{"server", server}};
  if (!ca_pem.empty()) cluster["certificate-authority-data"] = encode_base64(ca_pem);
  const Json config = {
      {"apiVersion", "v1"},
      {"kind", "Config"},
      {"clusters", {{{"name", "test"}, {"cluster", cluster}}}},
      {"users", {{{"name", "test"}, {"user", identity}}}},
      {"contexts", {{{"name", "test"}, {"context", {{"cluster", "test"}, {"user", "test"}}}}}},
      {"current-context", "test"}};
  return config.dump(2);
}

}  // namespace coxswain::testing
