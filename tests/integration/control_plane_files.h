// What the programs of a control plane are configured with: programs, certificates, kubeconfigs. No
// processes.
#pragma once

#include <string>
#include <vector>

#include "tests/integration/control_plane.h"
#include "tests/rest_client/certificates.h"

namespace coxswain::testing {

// "etcd", "kube-apiserver", "kubectl", "kube-controller-manager", "etcd-3.4": where it should be.
std::string program_path(const std::string& name);

struct Pki {
  TestAuthority authority{"control plane", std::chrono::hours(24)};
  CertificatePair api_server;
  CertificatePair admin;
  CertificatePair service_accounts;  // its certificate serves as the public key
};
Pki make_pki();

struct KubeconfigUser {
  CertificatePair certificate{};
  std::string token{};
};
// JSON, which is YAML.
std::string kubeconfig_text(const std::string& server, const std::string& ca_pem, const KubeconfigUser& user);

}  // namespace coxswain::testing
