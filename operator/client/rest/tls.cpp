#include "operator/client/rest/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <utility>

#include "operator/client/rest/url.h"

// cpprest calls this for each connection, before it lets anyone say whom to trust: where there is a bundle of
// the system's authorities it is read and parsed each time, for nothing (20 ms and a megabyte). In a program
// that links this file it does nothing; trust_system() does what it did.
extern "C" int SSL_CTX_set_default_verify_paths(SSL_CTX*) {
  return 1;
}

namespace coxswain {

namespace {

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Store = std::unique_ptr<X509_STORE, Freed<X509_STORE_free>>;

// A handshake may outlive whoever asked for it, so each context owns a share of what it writes to.
struct Verification {
  std::shared_ptr<TlsDiagnosis> diagnosis;
  std::string server_name;
};

int verification_index() {
  static const int index = SSL_CTX_get_ex_new_index(
      0, nullptr, nullptr, nullptr, [](void*, void* pointer, CRYPTO_EX_DATA*, int, long, void*) {
        delete static_cast<Verification*>(pointer);
      });
  return index;
}

Bio memory_bio(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Without it OpenSSL asks for an encrypted key's passphrase on the terminal.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

std::string openssl_reason() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason == nullptr ? "" : std::string(" (OpenSSL: ") + reason + ")";
}

Result<void> trust_only(SSL_CTX* context, const std::string& ca_pem) {
  Store store(X509_STORE_new());
  const Bio bio = memory_bio(ca_pem);
  int count = 0;
  while (const Certificate certificate{PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr)}) {
    if (X509_STORE_add_cert(store.get(), certificate.get()) == 1) ++count;
  }
  ERR_clear_error();
  if (count == 0) {
    return bad_input(
        "certificate-authority: holds no certificate in PEM form (-----BEGIN CERTIFICATE-----).");
  }
  SSL_CTX_set_cert_store(context, store.release());
  return {};
}

void trust_system(SSL_CTX* context) {
  SSL_CTX_set_default_verify_file(context);
  SSL_CTX_set_default_verify_dir(context);
  ERR_clear_error();  // one of the two is often missing
}

Result<void> show_certificate(SSL_CTX* context, const TlsMaterial& material) {
  const Bio bio = memory_bio(material.certificate_pem);
  const Certificate leaf(PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr));
  if (!leaf || SSL_CTX_use_certificate(context, leaf.get()) != 1) {
    return bad_input("client-certificate: holds no usable certificate in PEM form" + openssl_reason() + ".");
  }
  while (Certificate next{PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr)}) {
    if (SSL_CTX_add0_chain_cert(context, next.get()) == 1) next.release();
  }
  ERR_clear_error();
  const Bio key_bio = memory_bio(material.key_pem);
  const PrivateKey key(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, no_passphrase, nullptr));
  if (!key) {
    return bad_input("client-key: holds no private key in PEM form, or one with a passphrase" +
                     openssl_reason() + "; write it without one.");
  }
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    return bad_input("client-key: does not belong to client-certificate" + openssl_reason() + ".");
  }
  return {};
}

std::string refusal(const Verification& verification, int error) {
  if (error == X509_V_ERR_HOSTNAME_MISMATCH || error == X509_V_ERR_IP_ADDRESS_MISMATCH) {
    return "The server's certificate is not for " + verification.server_name +
           "; use a name that it holds, or set tls-server-name.";
  }
  return std::string("The server's certificate was refused: ") + X509_verify_cert_error_string(error) + ".";
}

// Replaces what is done once a certificate has come. The callback that an HTTP library sets for each
// certificate is put aside: cpprest's falls back to the common name and can't read an IPv6 literal.
int verify(X509_STORE_CTX* store_context, void*) {
  X509_STORE_CTX_set_verify_cb(store_context, [](int ok, X509_STORE_CTX*) { return ok; });
  const bool trusted = X509_verify_cert(store_context) == 1;
  if (!trusted) {
    const auto* ssl =
        static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store_context, SSL_get_ex_data_X509_STORE_CTX_idx()));
    const auto* verification =
        static_cast<Verification*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), verification_index()));
    verification->diagnosis->note(refusal(*verification, X509_STORE_CTX_get_error(store_context)));
  }
  return trusted ? 1 : 0;
}

Result<void> require_name(SSL_CTX* context, const std::string& server_name) {
  X509_VERIFY_PARAM* parameters = SSL_CTX_get0_param(context);
  X509_VERIFY_PARAM_set_hostflags(parameters,
                                  X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  const int set = is_ip_address(server_name)
                      ? X509_VERIFY_PARAM_set1_ip_asc(parameters, server_name.c_str())
                      : X509_VERIFY_PARAM_set1_host(parameters, server_name.c_str(), 0);
  // An empty name would check nothing.
  if (set != 1 || server_name.empty())
    return bad_input("tls-server-name: \"" + server_name + "\" is no name.");
  return {};
}

}  // namespace

void TlsDiagnosis::note(std::string sentence) {
  std::lock_guard lock(mutex_);
  sentence_ = std::move(sentence);
}

std::string TlsDiagnosis::take() {
  std::lock_guard lock(mutex_);
  return std::exchange(sentence_, {});
}

Result<void> configure_tls(SSL_CTX* context, const TlsSettings& settings,
                           std::shared_ptr<TlsDiagnosis> diagnosis) {
  const auto material = settings.material();
  if (!material) return tl::unexpected(material.error());
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  if (!material->certificate_pem.empty()) {
    if (auto shown = show_certificate(context, *material); !shown) return shown;
  }
  if (!settings.verify) return {};
  if (material->ca_pem.empty()) {
    trust_system(context);
  } else if (auto trusted = trust_only(context, material->ca_pem); !trusted) {
    return trusted;
  }
  if (auto named = require_name(context, settings.server_name); !named) return named;
  auto* verification = new Verification{std::move(diagnosis), settings.server_name};
  SSL_CTX_set_ex_data(context, verification_index(), verification);
  SSL_CTX_set_cert_verify_callback(context, verify, nullptr);
  return {};
}

Result<void> check_tls(const TlsSettings& settings) {
  const std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>> context(SSL_CTX_new(TLS_client_method()));
  return configure_tls(context.get(), settings, std::make_shared<TlsDiagnosis>());
}

}  // namespace coxswain
