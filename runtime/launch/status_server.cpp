#include "runtime/launch/status_server.h"

#include <utility>

#include "contract/contract.h"

namespace coxswain {

StatusServer::StatusServer(std::unique_ptr<HttpServer> server) : server_(std::move(server)) {}

Result<std::unique_ptr<StatusServer>> StatusServer::start(std::shared_ptr<const ProgressBoard> board,
                                                          const std::string& host, int port) {
  HttpPages pages;
  pages["/progress"] = [board] { return HttpPage{200, "application/json", board->progress_json()}; };
  pages["/metrics"] = [board] {
    return HttpPage{200, "text/plain; version=0.0.4; charset=utf-8", board->metrics_text()};
  };
  pages["/healthz"] = [] { return HttpPage{200, "text/plain", "ok\n"}; };
  auto server = HttpServer::start(std::move(pages), {.host = host, .port = port});
  if (!server)
    return fail(contract::ExitCode::kPortInUse,
                "Port " + std::to_string(port) + " (" + contract::kEnvAgentPort +
                    ") of the agent's /progress can't be opened: " + server.error() +
                    "; end the program that has it, or choose another by " + contract::kEnvAgentPort + ".");
  return std::unique_ptr<StatusServer>(new StatusServer(*std::move(server)));
}

}  // namespace coxswain
