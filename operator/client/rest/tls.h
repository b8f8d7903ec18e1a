// TLS to the API server by OpenSSL alone: which CA is trusted, which name the certificate must carry, which
// client certificate is shown. Nothing of an HTTP library's own checks is relied upon.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "contract/result.h"

typedef struct ssl_ctx_st SSL_CTX;

namespace coxswain {

struct TlsMaterial {
  std::string ca_pem;           // "": the system's CAs
  std::string certificate_pem;  // with its chain; "": no client certificate
  std::string key_pem;
};

struct TlsSettings {
  bool verify = true;       // false: any certificate will do
  std::string server_name;  // the DNS name or IP address that the certificate must be for
  // Asked for each new connection, so that changed files are seen. Thread-safe.
  std::function<Result<TlsMaterial>()> material;
};

// Why the last handshake failed; HTTP libraries only say that it did. Thread-safe.
class TlsDiagnosis {
 public:
  void note(std::string sentence);
  // The last sentence noted, once; "": none.
  std::string take();

 private:
  std::mutex mutex_;
  std::string sentence_;
};

// Makes a fresh context trust only `settings`' CA, speak TLS 1.2 or later, and check the server's name. What
// is refused later is noted in `diagnosis`. An error: our own material can't be used.
Result<void> configure_tls(SSL_CTX* context, const TlsSettings& settings,
                           std::shared_ptr<TlsDiagnosis> diagnosis);

// The same on a context of its own, which is thrown away: says at start what would fail later.
Result<void> check_tls(const TlsSettings& settings);

}  // namespace coxswain
