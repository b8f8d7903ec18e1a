#include "tests/rest_client/test_server.h"

#include <arpa/inet.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cctype>

namespace coxswain {

namespace {

X509* read_certificate(const std::string& pem) {
  BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  X509* certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  return certificate;
}

EVP_PKEY* read_key(const std::string& pem) {
  BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  EVP_PKEY* key = PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  return key;
}

int listen_on_loopback(int& port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ::bind(fd, reinterpret_cast<sockaddr*>(&address), size);
  ::listen(fd, 16);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  port = ntohs(address.sin_port);
  return fd;
}

size_t content_length(std::string head) {
  for (char& c : head) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto at = head.find("content-length:");
  return at == std::string::npos ? 0 : std::stoul(head.substr(at + 15));
}

}  // namespace

HttpsServer::HttpsServer(const CertificatePair& certificate, httplib::Server::Handler handler,
                         HttpsServerOptions options) {
  X509* own = read_certificate(certificate.certificate_pem);
  EVP_PKEY* key = read_key(certificate.key_pem);
  X509_STORE* client_ca = nullptr;
  if (!options.client_ca_pem.empty()) {
    client_ca = X509_STORE_new();
    X509* ca = read_certificate(options.client_ca_pem);
    X509_STORE_add_cert(client_ca, ca);
    X509_free(ca);
  }
  server_ = std::make_unique<httplib::SSLServer>(own, key, client_ca);
  if (options.max_tls_version != 0) {
    // OpenSSL's default security level has no ciphers for what is this old.
    SSL_CTX_set_security_level(server_->ssl_context(), 0);
    SSL_CTX_set_min_proto_version(server_->ssl_context(), options.max_tls_version);
    SSL_CTX_set_max_proto_version(server_->ssl_context(), options.max_tls_version);
  }
  X509_free(own);
  EVP_PKEY_free(key);
  server_->set_keep_alive_timeout(1);
  server_->Get(".*", handler);
  server_->Delete(".*", handler);
  server_->Post(".*", handler);
  server_->Put(".*", handler);
  server_->Patch(".*", handler);
  port_ = server_->bind_to_any_port(options.address);
  thread_ = std::thread([this] { server_->listen_after_bind(); });
  // stop() does nothing to a server that does not run yet.
  while (!server_->is_running()) std::this_thread::yield();
}

HttpsServer::~HttpsServer() {
  server_->stop();
  thread_.join();
}

RawConnection::~RawConnection() {
  if (fd_ >= 0) ::close(fd_);
}

std::string RawConnection::read_request() {
  std::array<char, 4096> buffer{};
  while (true) {
    const auto head_end = buffered_.find("\r\n\r\n");
    if (head_end != std::string::npos) {
      const size_t size = head_end + 4 + content_length(buffered_.substr(0, head_end));
      if (buffered_.size() >= size) {
        std::string request = buffered_.substr(0, size);
        buffered_.erase(0, size);
        return request;
      }
    }
    const ssize_t count = ::read(fd_, buffer.data(), buffer.size());
    if (count <= 0) return "";
    buffered_.append(buffer.data(), static_cast<size_t>(count));
  }
}

void RawConnection::write(const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t count = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) return;
    sent += static_cast<size_t>(count);
  }
}

void RawConnection::wait_for_close() {
  std::array<char, 4096> buffer{};
  while (::read(fd_, buffer.data(), buffer.size()) > 0) {
  }
}

void RawConnection::reset() {
  const linger now{1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  ::close(fd_);
  fd_ = -1;
}

RawServer::RawServer(std::function<void(RawConnection&, int)> serve) : serve_(std::move(serve)) {
  listener_ = listen_on_loopback(port_);
  thread_ = std::thread([this] {
    for (int number = 0;; ++number) {
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      connections_.emplace_back([this, fd, number] {
        RawConnection connection(fd);
        serve_(connection, number);
      });
    }
  });
}

RawServer::~RawServer() {
  ::shutdown(listener_, SHUT_RDWR);
  thread_.join();
  ::close(listener_);
  for (std::thread& connection : connections_) connection.join();
}

int closed_port() {
  int port = 0;
  ::close(listen_on_loopback(port));
  return port;
}

const char kChunkedHead[] =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";

std::string chunk(const std::string& bytes) {
  std::array<char, 20> size{};
  std::snprintf(size.data(), size.size(), "%zx\r\n", bytes.size());
  return size.data() + bytes + "\r\n";
}

std::string whole_answer(int status, const std::string& body, const std::string& headers) {
  return "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n" + headers + "\r\n" + body;
}

}  // namespace coxswain
