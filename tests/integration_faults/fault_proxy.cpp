#include "tests/integration_faults/fault_proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <list>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tests/integration/control_plane_files.h"
#include "tests/rest_client/certificates.h"

namespace coxswain::testing {

namespace {

constexpr size_t kEnough = 1 << 20;  // held for a side that doesn't take it

using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

Context server_context(const CertificatePair& certificate) {
  Context context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  BIO* bio = BIO_new_mem_buf(certificate.certificate_pem.data(), -1);
  X509* x509 = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  SSL_CTX_use_certificate(context.get(), x509);
  X509_free(x509);
  BIO_free(bio);
  bio = BIO_new_mem_buf(certificate.key_pem.data(), -1);
  EVP_PKEY* key = PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
  SSL_CTX_use_PrivateKey(context.get(), key);
  EVP_PKEY_free(key);
  BIO_free(bio);
  return context;
}

// OpenSSL writes without MSG_NOSIGNAL.
void refuse_broken_pipes() {
  sigset_t broken_pipe;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
}

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// One end of a TLS connection that never blocks.
class Side {
 public:
  Side() = default;
  Side(int fd, SSL* ssl) : fd_(fd), ssl_(ssl, SSL_free) {
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    SSL_set_fd(ssl, fd);
    SSL_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  }
  Side(Side&& other) noexcept : fd_(std::exchange(other.fd_, -1)), ssl_(std::move(other.ssl_)) {}
  Side& operator=(Side&&) = delete;
  ~Side() {
    if (fd_ >= 0) ::close(fd_);
  }

  int fd() const { return fd_; }
  bool open() const { return open_; }
  short events() const { return static_cast<short>(POLLIN | (out.empty() && !wants_write_ ? 0 : POLLOUT)); }

  std::string read() {
    std::string bytes;
    char buffer[16384];
    while (open_) {
      const int got = SSL_read(ssl_.get(), buffer, sizeof buffer);
      if (!settled(got)) break;
      bytes.append(buffer, static_cast<size_t>(got));
    }
    return bytes;
  }
  // Gives at most `limit` bytes of `out`; how many it gave.
  size_t write(size_t limit) {
    size_t given = 0;
    while (open_ && given < limit && !out.empty()) {
      const int size = static_cast<int>(std::min(out.size(), limit - given));
      const int sent = SSL_write(ssl_.get(), out.data(), size);
      if (!settled(sent)) break;
      out.erase(0, static_cast<size_t>(sent));
      given += static_cast<size_t>(sent);
    }
    return given;
  }

  std::string out;

 private:
  bool settled(int result) {
    if (result > 0) return true;
    const int error = SSL_get_error(ssl_.get(), result);
    wants_write_ = error == SSL_ERROR_WANT_WRITE;
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) open_ = false;
    ERR_clear_error();
    return false;
  }

  int fd_ = -1;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_{nullptr, SSL_free};
  bool open_ = true;
  bool wants_write_ = false;
};

struct Connection {
  Side client;
  Side server;
  RequestParser parser{};
  std::optional<SeenRequest> unanswered{};
  size_t come_back = 0;  // bytes, since cut_after() was asked for
  bool frozen = false;
};

std::string kind_of(const SeenRequest& request) {
  const std::string path = request.target.substr(0, request.target.find('?'));
  const bool streams = request.target.find("watch=true") != std::string::npos ||
                       request.target.find("watch=1") != std::string::npos;
  for (const char* plural : {"trainingjobs", "pods", "services", "configmaps", "nodes", "events", "leases"}) {
    if (path.find(std::string("/") + plural) == std::string::npos) continue;
    const bool status = path.ends_with("/status");
    return request.method + (streams ? " watch " : " ") + plural + (status ? "/status" : "");
  }
  return request.method + " other";
}

}  // namespace

// Everything but what is atomic or under mutex_ belongs to the thread of run().
class FaultProxy::Loop {
 public:
  Loop(int upstream_port, const CertificatePair& certificate)
      : upstream_port_(upstream_port),
        server_context_(server_context(certificate)),
        client_context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(listener_, 128) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw std::runtime_error("the proxy has no port");
    }
    port_ = ntohs(address.sin_port);
  }
  ~Loop() {
    ::close(listener_);
    ::close(wake_);
  }

  int port() const { return port_; }

  void run(const std::stop_token& stop) {
    refuse_broken_pipes();
    const std::stop_callback wake_up(stop, [this] { wake(); });
    while (!stop.stop_requested()) {
      wait();
      std::unique_lock lock(mutex_);
      if (std::exchange(cut_asked_, false)) connections_.clear();
      if (std::exchange(freeze_asked_, false)) {
        for (Connection& one : connections_) one.frozen = true;
      }
      if (stalled_) continue;
      lock.unlock();
      accept_all();
      for (auto one = connections_.begin(); one != connections_.end();) {
        if (!one->frozen) serve(*one);
        if (cut_asked()) break;
        one = one->frozen || is_alive(*one) ? std::next(one) : connections_.erase(one);
      }
    }
    connections_.clear();
  }

  // --- From any thread
  template <typename Change>
  void set(const Change& change) {
    {
      std::lock_guard lock(mutex_);
      change(*this);
    }
    wake();
  }

  std::mutex mutex_;
  Eyes eyes_;
  bool cut_asked_ = false;
  bool freeze_asked_ = false;
  bool stalled_ = false;
  size_t slow_bytes_ = 0;
  size_t cut_after_ = 0;
  int64_t requests_ = 0;
  int64_t accepted_ = 0;
  std::map<std::string, int64_t> by_kind_;
  std::map<int, int64_t> by_code_;

 private:
  void wake() {
    const uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_, &one, sizeof one);
  }

  bool cut_asked() {
    std::lock_guard lock(mutex_);
    return cut_asked_;
  }

  void wait() {
    std::vector<pollfd> fds{{wake_, POLLIN, 0}};
    bool slow = false;
    {
      std::lock_guard lock(mutex_);
      slow = slow_bytes_ != 0;
      if (!stalled_) {
        fds.push_back({listener_, POLLIN, 0});
        for (Connection& one : connections_) {
          if (one.frozen) continue;
          // Slow answers are given by the clock, not whenever there is room.
          fds.push_back({one.client.fd(), slow ? short{POLLIN} : one.client.events(), 0});
          fds.push_back({one.server.fd(), one.server.events(), 0});
        }
      }
    }
    ::poll(fds.data(), fds.size(), slow ? 10 : -1);
    uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(wake_, &count, sizeof count);
  }

  void accept_all() {
    for (;;) {
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      const int upstream = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const sockaddr_in address = loopback(upstream_port_);
      if (::connect(upstream, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        ::close(upstream);
        ::close(fd);
        continue;
      }
      SSL* from_client = SSL_new(server_context_.get());
      SSL_set_accept_state(from_client);
      SSL* to_server = SSL_new(client_context_.get());
      SSL_set_connect_state(to_server);
      connections_.push_back({Side(fd, from_client), Side(upstream, to_server)});
      std::lock_guard lock(mutex_);
      ++accepted_;
    }
  }

  // Nothing goes on once a side has asked for all to be cut.
  void serve(Connection& one) {
    for (const RequestParser::Piece& piece : one.parser.feed(one.client.read())) {
      if (piece.head) {
        one.unanswered = *piece.head;
        if (!see(*piece.head, &Eyes::request)) return;
      }
      one.server.out += piece.bytes;
    }
    one.server.write(kEnough);
    const std::string answer = one.server.read();
    if (!answer.empty() && one.unanswered) {
      const SeenRequest request = *std::exchange(one.unanswered, std::nullopt);
      count_answer(answer);
      if (!see(request, &Eyes::answer)) return;
    }
    one.client.out += answer;
    give_back(one);
  }

  void give_back(Connection& one) {
    size_t limit = 0;
    size_t cut_after = 0;
    {
      std::lock_guard lock(mutex_);
      limit = slow_bytes_ == 0 ? kEnough : slow_bytes_;
      cut_after = cut_after_;
    }
    if (cut_after == 0) {
      one.client.write(limit);
      one.come_back = 0;
      return;
    }
    one.come_back += one.client.write(std::min(limit, cut_after - std::min(cut_after, one.come_back)));
    if (one.come_back >= cut_after) one.client.out.clear();
  }

  bool is_alive(const Connection& one) {
    std::lock_guard lock(mutex_);
    if (cut_after_ != 0 && one.come_back >= cut_after_) return false;
    // What the server said last still goes back.
    return one.client.open() && (one.server.open() || !one.client.out.empty());
  }

  bool see(const SeenRequest& request, std::function<void(const SeenRequest&)> Eyes::*which) {
    std::function<void(const SeenRequest&)> eye;
    {
      std::lock_guard lock(mutex_);
      if (which == &Eyes::request) {
        ++requests_;
        ++by_kind_[kind_of(request)];
      }
      eye = eyes_.*which;
    }
    eye(request);
    return !cut_asked();
  }

  // "HTTP/1.1 409 Conflict"
  void count_answer(const std::string& answer) {
    std::lock_guard lock(mutex_);
    ++by_code_[std::atoi(answer.substr(0, 12).substr(answer.find(' ') + 1).c_str())];
  }

  const int upstream_port_;
  Context server_context_;
  Context client_context_;
  int wake_;
  int listener_;
  int port_ = 0;
  std::list<Connection> connections_;
};

FaultProxy::FaultProxy(const ControlPlane& plane) {
  const TestAuthority authority("fault proxy");
  ca_pem_ = authority.ca_pem();
  loop_ = std::make_unique<Loop>(plane.api_server_port(), authority.issue({"proxy", "IP:127.0.0.1"}));
  port_ = loop_->port();
  thread_ = std::jthread([this](const std::stop_token& stop) { loop_->run(stop); });
}

FaultProxy::~FaultProxy() = default;

std::string FaultProxy::kubeconfig(const TemporaryFolder& folder, const std::string& token_file) const {
  Json config = Json::parse(kubeconfig_text("https://127.0.0.1:" + std::to_string(port_), ca_pem_, {}));
  config["users"][0]["user"] = {{"tokenFile", token_file}};
  return folder.write("proxy-" + std::to_string(port_) + ".kubeconfig", config.dump(2));
}

void FaultProxy::watch(Eyes eyes) {
  loop_->set([&](Loop& loop) { loop.eyes_ = std::move(eyes); });
}
void FaultProxy::cut() {
  loop_->set([](Loop& loop) { loop.cut_asked_ = true; });
}
void FaultProxy::freeze() {
  loop_->set([](Loop& loop) { loop.freeze_asked_ = true; });
}
void FaultProxy::stall(bool on) {
  loop_->set([&](Loop& loop) { loop.stalled_ = on; });
}
void FaultProxy::slow(size_t bytes) {
  loop_->set([&](Loop& loop) { loop.slow_bytes_ = bytes; });
}
void FaultProxy::cut_after(size_t bytes) {
  loop_->set([&](Loop& loop) { loop.cut_after_ = bytes; });
}

int64_t FaultProxy::requests() const {
  std::lock_guard lock(loop_->mutex_);
  return loop_->requests_;
}
int64_t FaultProxy::connections() const {
  std::lock_guard lock(loop_->mutex_);
  return loop_->accepted_;
}
int64_t FaultProxy::answers(int code) const {
  std::lock_guard lock(loop_->mutex_);
  const auto found = loop_->by_code_.find(code);
  return found == loop_->by_code_.end() ? 0 : found->second;
}
std::map<std::string, int64_t> FaultProxy::requests_by_kind() const {
  std::lock_guard lock(loop_->mutex_);
  return loop_->by_kind_;
}

}  // namespace coxswain::testing
