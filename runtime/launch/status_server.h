// The agent's HTTP side: GET /progress, /metrics, /healthz.
#pragma once

#include <memory>
#include <string>

#include "contract/result.h"
#include "runtime/launch/progress_board.h"
#include "runtime/serving/http_server.h"

namespace coxswain {

// Serves from threads of its own until destroyed. Destroying it closes the port and does not wait for
// clients.
class StatusServer {
 public:
  // host: the address to listen on. port 0: any free one. kPortInUse if the port is taken.
  static Result<std::unique_ptr<StatusServer>> start(std::shared_ptr<const ProgressBoard> board,
                                                     const std::string& host, int port);

  int port() const { return server_->port(); }

 private:
  explicit StatusServer(std::unique_ptr<HttpServer> server);

  std::unique_ptr<HttpServer> server_;
};

}  // namespace coxswain
