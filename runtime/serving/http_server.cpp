#include "runtime/serving/http_server.h"

#include <httplib.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

namespace coxswain {

namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

constexpr size_t kRequestMaxBytes = 64 * 1024;

// The library's own stream allows each read its time, so that a client that sends a byte now and then holds a
// thread for as long as it likes. This one has a time for all, and ends when the server does.
class BoundedStream : public httplib::Stream {
 public:
  BoundedStream(socket_t socket, int stop_fd, SteadyTime deadline)
      : socket_(socket), stop_fd_(stop_fd), deadline_(deadline) {}

  bool is_readable() const override { return begin_ < end_ || wait(POLLIN); }
  bool is_writable() const override { return wait(POLLOUT); }

  ssize_t read(char* to, size_t size) override {
    if (begin_ == end_ && !fill()) return -1;
    const size_t taken = std::min(size, end_ - begin_);
    std::memcpy(to, buffer_.data() + begin_, taken);
    begin_ += taken;
    return static_cast<ssize_t>(taken);
  }

  ssize_t write(const char* from, size_t size) override {
    size_t sent = 0;
    while (sent < size) {
      if (!wait(POLLOUT)) return -1;
      const ssize_t now = ::send(socket_, from + sent, size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (now < 0 && errno != EAGAIN && errno != EINTR) return -1;
      if (now > 0) sent += static_cast<size_t>(now);
    }
    return static_cast<ssize_t>(size);
  }

  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_; }

 private:
  bool fill() {
    for (;;) {
      if (total_ >= kRequestMaxBytes || !wait(POLLIN)) return false;
      const ssize_t size = ::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
      if (size < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (size <= 0) return false;
      begin_ = 0;
      end_ = static_cast<size_t>(size);
      total_ += end_;
      return true;
    }
  }

  bool wait(short events) const {
    for (;;) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline_ - std::chrono::steady_clock::now());
      if (left.count() <= 0) return false;
      std::array<pollfd, 2> fds{pollfd{socket_, events, 0}, pollfd{stop_fd_, POLLIN, 0}};
      const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(left.count()));
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0 || fds[1].revents != 0) return false;
      return true;
    }
  }

  const socket_t socket_;
  const int stop_fd_;
  const SteadyTime deadline_;
  std::array<char, 4096> buffer_{};
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t total_ = 0;
};

class BoundedServer : public httplib::Server {
 public:
  BoundedServer(int stop_fd, std::chrono::milliseconds limit) : stop_fd_(stop_fd), limit_(limit) {}

 private:
  bool process_and_close_socket(socket_t socket) override {
    BoundedStream stream(socket, stop_fd_, std::chrono::steady_clock::now() + limit_);
    bool closed = false;
    const bool served = process_request(stream, /*close_connection=*/true, closed, nullptr);
    ::shutdown(socket, SHUT_RDWR);
    ::close(socket);
    return served;
  }

  const int stop_fd_;
  const std::chrono::milliseconds limit_;
};

// The library's own setting, SO_REUSEPORT, would let two programs share one port unseen.
void set_socket_options(socket_t socket) {
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
}

// The port; or 0, with the reason in errno.
int open_port(httplib::Server& server, const std::string& host, int port) {
  errno = 0;
  if (port == 0) return std::max(0, server.bind_to_any_port(host));
  return server.bind_to_port(host, port) ? port : 0;
}

int open_port(httplib::Server& server, const HttpServerOptions& options) {
  if (!options.host.empty()) return open_port(server, options.host, options.port);
  const int port = open_port(server, "::", options.port);
  if (port != 0 || errno == EADDRINUSE || errno == EACCES) return port;
  return open_port(server, "0.0.0.0", options.port);
}

std::string reason_of(int error) {
  if (error == EADDRINUSE) return "the port is taken by another program";
  if (error == EACCES) return "this user may not open a port below 1024";
  if (error == EADDRNOTAVAIL || error == 0) return "it is no address of this machine";
  return std::generic_category().message(error);
}

void answer(const std::function<HttpPage()>& make, httplib::Response& response) {
  HttpPage page = make();
  response.status = page.status;
  response.set_content(std::move(page.body), page.content_type.c_str());
}

}  // namespace

struct HttpServer::Impl {
  Impl(int stop_fd, std::chrono::milliseconds limit) : stop_fd(stop_fd), server(stop_fd, limit) {}
  ~Impl() { ::close(stop_fd); }

  const int stop_fd;
  BoundedServer server;
  int port = 0;
  std::thread listener;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() {
  ::eventfd_write(impl_->stop_fd, 1);
  impl_->server.stop();
  impl_->listener.join();
}

int HttpServer::port() const {
  return impl_->port;
}

tl::expected<std::unique_ptr<HttpServer>, std::string> HttpServer::start(HttpPages pages,
                                                                         const HttpServerOptions& options) {
  const int stop_fd = ::eventfd(0, EFD_CLOEXEC);
  if (stop_fd < 0) return tl::unexpected(std::generic_category().message(errno));
  auto impl = std::make_unique<Impl>(stop_fd, options.connection_limit);
  httplib::Server& server = impl->server;
  server.set_socket_options(set_socket_options);
  server.new_task_queue = [threads = static_cast<size_t>(options.threads)] {
    return new httplib::ThreadPool(threads);
  };
  server.set_payload_max_length(0);
  // The library's own would tell the client what was thrown.
  server.set_exception_handler([](const httplib::Request&, httplib::Response& response, std::exception_ptr) {
    response.status = 500;
  });
  // Paths are no patterns here.
  server.set_pre_routing_handler(
      [pages = std::move(pages)](const httplib::Request& request, httplib::Response& response) {
        const auto page = pages.find(request.path);
        const bool reads = request.method == "GET" || request.method == "HEAD";
        if (page == pages.end() || !reads) {
          response.status = page == pages.end() ? 404 : 405;
        } else {
          answer(page->second, response);
        }
        return httplib::Server::HandlerResponse::Handled;
      });
  impl->port = open_port(server, options);
  if (impl->port == 0) return tl::unexpected(reason_of(errno));
  impl->listener = std::thread([&server] { server.listen_after_bind(); });
  // stop() does nothing to a server that does not run yet.
  while (!server.is_running()) std::this_thread::yield();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

}  // namespace coxswain
