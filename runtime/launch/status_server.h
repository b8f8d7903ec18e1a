// The agent's HTTP side: GET /progress, /metrics, /healthz.
#pragma once

#include <memory>
#include <string>

#include "contract/result.h"
#include "runtime/launch/progress_board.h"

namespace coxswain {

// Serves from threads of its own until destroyed. `board` must outlive it.
class StatusServer {
 public:
  // host: the address to listen on. port 0: any free one. kPortInUse if the port is taken.
  static Result<std::unique_ptr<StatusServer>> start(const ProgressBoard& board, const std::string& host,
                                                     int port);

  ~StatusServer();
  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;

  int port() const;

 private:
  struct Impl;
  explicit StatusServer(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace coxswain
