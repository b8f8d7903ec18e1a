// HTTP by the C++ REST SDK. Its headers are included in this file's source only.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "operator/client/rest/http_transport.h"
#include "operator/client/rest/tls.h"
#include "operator/client/rest/url.h"

namespace coxswain {

struct TransportSettings {
  Url server;
  TlsSettings tls;           // of an https server
  std::optional<Url> proxy;  // http; TLS is tunnelled through it by CONNECT
  // A connection on which nothing moves for this long is given up.
  std::chrono::milliseconds request_idle_timeout{30'000};
  std::chrono::milliseconds stream_idle_timeout{90'000};
  bool compression = true;  // gzip of whole answers
};

// The library resends on a new connection what it sent on one that the server had closed while it was kept
// open, except for POST: that one fails with kNoAnswer.
std::unique_ptr<HttpTransport> make_cpprest_transport(TransportSettings settings);

}  // namespace coxswain
