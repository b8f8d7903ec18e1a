#include "tests/rest_client/certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <atomic>

namespace coxswain {

namespace {

std::shared_ptr<EVP_PKEY> new_key() {
  return {EVP_EC_gen("P-256"), EVP_PKEY_free};
}

template <typename Write>
std::string pem_of(Write write) {
  BIO* bio = BIO_new(BIO_s_mem());
  write(bio);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<size_t>(size));
  BIO_free(bio);
  return text;
}

std::string certificate_pem(X509* certificate) {
  return pem_of([&](BIO* bio) { PEM_write_bio_X509(bio, certificate); });
}

void add_extension(X509* certificate, int nid, const std::string& value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str());
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

void add_name(X509* certificate, const char* field, const std::string& value) {
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), field, MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(value.c_str()), -1, -1, 0);
}

std::shared_ptr<X509> new_certificate(const std::string& name, EVP_PKEY* key,
                                      std::chrono::seconds valid_for) {
  static std::atomic<long> serial{1};
  std::shared_ptr<X509> certificate(X509_new(), X509_free);
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial++);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -7200);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), valid_for.count());
  X509_set_pubkey(certificate.get(), key);
  add_name(certificate.get(), "CN", name);
  return certificate;
}

}  // namespace

TestAuthority::TestAuthority(const std::string& name, std::chrono::seconds valid_for)
    : key_(new_key()), certificate_(new_certificate(name, key_.get(), valid_for)) {
  X509_set_issuer_name(certificate_.get(), X509_get_subject_name(certificate_.get()));
  add_extension(certificate_.get(), NID_basic_constraints, "critical,CA:TRUE");
  add_extension(certificate_.get(), NID_key_usage, "critical,keyCertSign");
  X509_sign(certificate_.get(), key_.get(), EVP_sha256());
  ca_pem_ = certificate_pem(certificate_.get());
}

CertificatePair TestAuthority::issue(const CertificateRequest& request) const {
  const auto key = new_key();
  const auto certificate = new_certificate(request.common_name, key.get(), request.valid_for);
  if (!request.organization.empty()) add_name(certificate.get(), "O", request.organization);
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate_.get()));
  if (!request.subject_alt_name.empty()) {
    add_extension(certificate.get(), NID_subject_alt_name, request.subject_alt_name);
  }
  X509_sign(certificate.get(), key_.get(), EVP_sha256());
  return {certificate_pem(certificate.get()), pem_of([&](BIO* bio) {
            PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

}  // namespace coxswain
