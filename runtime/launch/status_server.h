// The agent's HTTP side: GET /progress, /metrics, /healthz.
#pragma once

#include <memory>
#include <string>

#include "contract/result.h"
#include "runtime/launch/progress_board.h"

namespace coxswain {

// Serves from threads of its own until destroyed. Destroying it closes the port and does not wait: a client
// that is slow with its request keeps a thread and what that needs until the process ends, and nothing else.
class StatusServer {
 public:
  // host: the address to listen on. port 0: any free one. kPortInUse if the port is taken.
  static Result<std::unique_ptr<StatusServer>> start(std::shared_ptr<const ProgressBoard> board,
                                                     const std::string& host, int port);

  ~StatusServer();
  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;

  int port() const;

 private:
  struct Impl;
  explicit StatusServer(std::shared_ptr<Impl> impl);

  std::shared_ptr<Impl> impl_;
};

}  // namespace coxswain
