// Plain sockets on this machine, for clients that behave as no library's would.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace coxswain {

// A connection to 127.0.0.1, or to ::1.
class LoopbackClient {
 public:
  explicit LoopbackClient(int port, bool ipv6 = false);
  ~LoopbackClient();
  LoopbackClient(const LoopbackClient&) = delete;
  LoopbackClient& operator=(const LoopbackClient&) = delete;

  bool connected() const { return fd_ >= 0; }
  // False: the other side has closed.
  bool send(std::string_view bytes);
  // Everything until the other side closes, or `limit` passes.
  std::string receive(std::chrono::milliseconds limit = std::chrono::seconds(20));

 private:
  int fd_ = -1;
};

// The whole answer, head and body, to one GET.
std::string http_get(int port, const std::string& path, bool ipv6 = false);

bool has_ipv6();

}  // namespace coxswain
