#include "runtime/launch/master_wait.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

namespace coxswain {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kBetweenAttempts{1000};
constexpr milliseconds kConnectTimeout{2000};
constexpr seconds kBetweenWords{30};

// What stands in the way; empty: the port answers.
std::string connect_to(const addrinfo& address) {
  const int fd = ::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::strerror(errno);
  std::string error;
  if (::connect(fd, address.ai_addr, address.ai_addrlen) != 0) {
    pollfd connecting{fd, POLLOUT, 0};
    int code = errno;
    if (code == EINPROGRESS) {
      socklen_t size = sizeof(code);
      code = ETIMEDOUT;
      if (::poll(&connecting, 1, static_cast<int>(kConnectTimeout.count())) > 0)
        ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size);
    }
    if (code != 0) error = std::strerror(code);
  }
  ::close(fd);
  return error;
}

struct Obstacle {
  bool name_unknown = false;
  std::string error;
};

std::optional<Obstacle> obstacle(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); code != 0)
    return Obstacle{true, ::gai_strerror(code)};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, ::freeaddrinfo);
  std::string error;
  for (const addrinfo* address = found; address; address = address->ai_next) {
    error = connect_to(*address);
    if (error.empty()) return std::nullopt;
  }
  return Obstacle{false, error};
}

std::string waiting_for(const MasterWait& wait, const Obstacle& what) {
  if (what.name_unknown)
    return fmt::format("the name {} of the master to resolve ({})", wait.address, what.error);
  return fmt::format("the master at {}:{} to answer ({})", wait.address, wait.port, what.error);
}

}  // namespace

Result<void> wait_for_master(const MasterWait& wait) {
  const Clock::time_point start = Clock::now();
  Clock::time_point last_word{};
  bool said_name_unknown = false;
  for (;;) {
    const std::optional<Obstacle> what = obstacle(wait.address, wait.port);
    if (!what) return {};
    const std::string waited_for = waiting_for(wait, *what);
    const Clock::time_point now = Clock::now();
    if (now - start >= wait.timeout)
      return fail(
          contract::ExitCode::kRendezvousTimeout,
          fmt::format("Waited {:.0f} s for {}, and give up; check that the pod of node rank 0 runs and that "
                      "nothing (a NetworkPolicy, a firewall) keeps pods of the job apart.",
                      std::chrono::duration<double>(now - start).count(), waited_for));
    if (last_word == Clock::time_point{} || now - last_word >= kBetweenWords ||
        said_name_unknown != what->name_unknown) {
      wait.say("Waiting for " + waited_for + ".");
      last_word = now;
      said_name_unknown = what->name_unknown;
    }
    const auto left = std::chrono::ceil<milliseconds>(start + wait.timeout - now);
    if (wait.sleep_or_stop(std::min(kBetweenAttempts, left)))
      return fail(contract::ExitCode::kStopped, "Stopped on request while waiting for " + waited_for + ".");
  }
}

}  // namespace coxswain
