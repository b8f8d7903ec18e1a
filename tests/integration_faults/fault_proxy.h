// Stands between one client and the API server, on loopback, TLS on both sides: sees each request, and does
// to the connections what networks do.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "tests/integration/control_plane.h"
#include "tests/integration_faults/request_parser.h"

namespace coxswain::testing {

class FaultProxy {
 public:
  explicit FaultProxy(const ControlPlane& plane);
  ~FaultProxy();

  // A kubeconfig that leads here, with the token of this file.
  std::string kubeconfig(const TemporaryFolder& folder, const std::string& token_file) const;

  // --- What is seen. Both are called on the proxy's thread, between bytes: nothing passes meanwhile.
  struct Eyes {
    // A request has come, and none of it has gone on yet.
    std::function<void(const SeenRequest&)> request = [](const SeenRequest&) {};
    // Its answer has begun to come, and none of it has gone back yet: what it asked for is done.
    std::function<void(const SeenRequest&)> answer = [](const SeenRequest&) {};
  };
  void watch(Eyes eyes);
  // From within Eyes or from anywhere: whoever is connected is cut off, and what was under way is lost.
  void cut();

  // --- Faults, each until it is taken back
  // The connections that there are go dead: nothing passes, and neither side is told. For good; new ones
  // work.
  void freeze();
  // Nothing passes, on any connection, old or new.
  void stall(bool on);
  // Answers trickle: so many bytes of each connection in 10 ms; 0: no limit.
  void slow(size_t bytes);
  // Each connection is cut when so many more bytes have come back over it; 0: none is.
  void cut_after(size_t bytes);

  int64_t requests() const;
  int64_t connections() const;
  int64_t answers(int code) const;
  std::map<std::string, int64_t> requests_by_kind() const;  // "POST pods", "GET watch pods", …

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
  std::string ca_pem_;
  int port_ = 0;
  std::jthread thread_;
};

}  // namespace coxswain::testing
