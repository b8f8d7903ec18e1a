// API servers of the tests, on loopback: one that answers requests over TLS, and one of bare sockets that
// does what no HTTP server would.
#pragma once

#include <httplib.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/rest_client/certificates.h"

namespace coxswain {

struct HttpsServerOptions {
  std::string address = "127.0.0.1";
  std::string client_ca_pem{};  // not empty: clients must show a certificate of this CA
  int max_tls_version = 0;      // TLS1_1_VERSION and the like; 0: OpenSSL's newest
};

// Answers with `handler` until destroyed; handlers run on several threads.
class HttpsServer {
 public:
  HttpsServer(const CertificatePair& certificate, httplib::Server::Handler handler,
              HttpsServerOptions options = {});
  ~HttpsServer();

  int port() const { return port_; }

 private:
  std::unique_ptr<httplib::SSLServer> server_;
  int port_ = 0;
  std::thread thread_;
};

// One accepted connection of a RawServer.
class RawConnection {
 public:
  explicit RawConnection(int fd) : fd_(fd) {}
  ~RawConnection();
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  // Up to the blank line, and the body that Content-Length announces; "" where the peer has gone.
  std::string read_request();
  void write(const std::string& bytes);
  // Blocks until the peer closes.
  void wait_for_close();
  // By RST instead of FIN.
  void reset();

 private:
  int fd_;
  std::string buffered_;
};

// Runs `serve` for each connection, one after another, each on a thread of its own.
class RawServer {
 public:
  explicit RawServer(std::function<void(RawConnection&, int number)> serve);
  ~RawServer();

  int port() const { return port_; }

 private:
  int listener_;
  int port_ = 0;
  std::function<void(RawConnection&, int)> serve_;
  std::vector<std::thread> connections_;
  std::thread thread_;
};

// A port of loopback that nothing listens on.
int closed_port();

// "HTTP/1.1 200 OK" with a chunked body that the caller goes on to write.
extern const char kChunkedHead[];
std::string chunk(const std::string& bytes);
std::string whole_answer(int status, const std::string& body, const std::string& headers = "");

}  // namespace coxswain
