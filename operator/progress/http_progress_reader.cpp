#include "operator/progress/http_progress_reader.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "operator/progress/http_answer.h"

namespace coxswain {

namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

// Whatever walks a value recurses; the agent's answer is four deep.
constexpr int kMaxDepth = 32;

class Socket {
 public:
  Socket(int family, SteadyTime deadline)
      : fd_(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)), deadline_(deadline) {}
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  template <typename Address>
  bool connect(const Address& address) {
    if (fd_ < 0) return false;
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return true;
    if (errno != EINPROGRESS || !wait(POLLOUT)) return false;
    int error = 0;
    socklen_t size = sizeof error;
    return ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
  }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      if (!wait(POLLOUT)) return false;
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
      if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  // Into `answer`, until it is complete or nothing can come of it.
  bool receive(HttpAnswer& answer) {
    std::array<char, 16384> buffer{};
    for (;;) {
      if (!wait(POLLIN)) return false;
      const ssize_t size = ::recv(fd_, buffer.data(), buffer.size(), 0);
      if (size < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (size < 0) return false;
      if (size == 0) return answer.end() == HttpAnswer::State::kComplete;
      const auto state = answer.take({buffer.data(), static_cast<size_t>(size)});
      if (state != HttpAnswer::State::kMore) return state == HttpAnswer::State::kComplete;
    }
  }

 private:
  bool wait(short events) const {
    for (;;) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline_ - std::chrono::steady_clock::now()).count();
      if (left <= 0) return false;
      pollfd one{fd_, events, 0};
      const int ready = ::poll(&one, 1, static_cast<int>(left));
      if (ready < 0 && errno == EINTR) continue;
      return ready > 0;
    }
  }

  const int fd_;
  const SteadyTime deadline_;
};

std::string pod_ip(const Json& pod) {
  const Json::json_pointer path("/status/podIP");
  if (!pod.contains(path) || !pod.at(path).is_string()) return "";
  return pod.at(path).get<std::string>();
}

// Only addresses: a pod's status is not asked for names.
bool exchange(const std::string& ip, int port, SteadyTime deadline, HttpAnswer& answer) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(static_cast<uint16_t>(port));
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = v4.sin_port;
  const bool is_v4 = ::inet_pton(AF_INET, ip.c_str(), &v4.sin_addr) == 1;
  if (!is_v4 && ::inet_pton(AF_INET6, ip.c_str(), &v6.sin6_addr) != 1) return false;
  Socket socket(is_v4 ? AF_INET : AF_INET6, deadline);
  if (is_v4 ? !socket.connect(v4) : !socket.connect(v6)) return false;
  const std::string host = is_v4 ? ip : "[" + ip + "]";
  return socket.send("GET /progress HTTP/1.1\r\nHost: " + host + ":" + std::to_string(port) +
                     "\r\nAccept: application/json\r\nConnection: close\r\n\r\n") &&
         socket.receive(answer);
}

std::optional<Json> object_in(std::string_view text) {
  bool too_deep = false;
  const auto watch_depth = [&](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > kMaxDepth;
    return !too_deep;
  };
  Json value = Json::parse(text, watch_depth, /*allow_exceptions=*/false);
  if (too_deep || !value.is_object()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<Json> HttpProgressReader::read(const Json& pod) {
  try {
    HttpAnswer answer(options_.max_bytes);
    const SteadyTime deadline = std::chrono::steady_clock::now() + options_.limit;
    if (!exchange(pod_ip(pod), options_.port, deadline, answer)) return std::nullopt;
    return object_in(answer.body());
  } catch (const std::exception&) {  // no memory, numbers that no type holds
    return std::nullopt;
  }
}

}  // namespace coxswain
