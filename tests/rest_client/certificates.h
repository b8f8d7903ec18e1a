// A certificate authority for one test.
#pragma once

#include <openssl/x509.h>

#include <chrono>
#include <memory>
#include <string>

namespace coxswain {

struct CertificateRequest {
  std::string common_name = "test";
  std::string subject_alt_name{};        // "DNS:localhost,IP:127.0.0.1"; "": none
  std::chrono::seconds valid_for{3600};  // negative: expired that long ago
  std::string organization{};            // a group, to an API server; "": none
};

struct CertificatePair {
  std::string certificate_pem;
  std::string key_pem;
};

class TestAuthority {
 public:
  explicit TestAuthority(const std::string& name = "test authority",
                         std::chrono::seconds valid_for = std::chrono::hours(1));

  const std::string& ca_pem() const { return ca_pem_; }
  CertificatePair issue(const CertificateRequest& request) const;

 private:
  std::shared_ptr<EVP_PKEY> key_;
  std::shared_ptr<X509> certificate_;
  std::string ca_pem_;
};

}  // namespace coxswain
