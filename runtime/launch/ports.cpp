#include "runtime/launch/ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

namespace coxswain {

namespace {

// Binds and lets go again. Returns the port that was bound, or -1 with errno.
int try_port(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<uint16_t>(port));
  socklen_t size = sizeof(address);
  const bool bound = ::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 && ::listen(fd, 1) == 0 &&
                     ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  const int error = errno;
  ::close(fd);
  errno = error;
  return bound ? ntohs(address.sin_port) : -1;
}

}  // namespace

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

Result<void> check_port_free(const std::string& name, int port) {
  if (try_port(port) >= 0) return {};
  if (errno == EADDRINUSE)
    return fail(contract::ExitCode::kPortInUse,
                "Port " + std::to_string(port) + " (" + name +
                    ") is taken by another program on this machine; end that program, "
                    "or choose another port by " +
                    name + ".");
  return fail(contract::ExitCode::kInternal,
              "Can't open port " + std::to_string(port) + " (" + name + "): " + std::strerror(errno) + ".");
}

Result<int> read_port(const std::string& name, const std::string& text) {
  int port = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error == std::errc() && stop == text.data() + text.size() && port >= 1 && port <= 65535) return port;
  return bad_input("The environment variable " + name + " is '" + text +
                   "', but must be a whole number from 1 to 65535.");
}

Result<int> find_free_port() {
  const int port = try_port(0);
  if (port > 0) return port;
  return fail(contract::ExitCode::kInternal, std::string("Can't open a port: ") + std::strerror(errno) + ".");
}

}  // namespace coxswain
