#include "runtime/launch/status_server.h"

#include <httplib.h>
#include <sys/socket.h>

#include <thread>
#include <utility>

#include "contract/contract.h"

namespace coxswain {

namespace {

// A few clients that are slow with their requests must not keep /progress from the operator.
constexpr size_t kThreads = 16;

}  // namespace

struct StatusServer::Impl {
  httplib::Server server;
  int port = 0;
};

StatusServer::StatusServer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

StatusServer::~StatusServer() {
  impl_->server.stop();
}

int StatusServer::port() const {
  return impl_->port;
}

Result<std::unique_ptr<StatusServer>> StatusServer::start(std::shared_ptr<const ProgressBoard> board,
                                                          const std::string& host, int port) {
  auto impl = std::make_shared<Impl>();
  httplib::Server& server = impl->server;
  // The library's own setting, SO_REUSEPORT, would let two agents share one port unseen.
  server.set_socket_options([](socket_t socket) {
    const int on = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  });
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_keep_alive_timeout(1);
  server.set_read_timeout(1);
  server.set_payload_max_length(0);
  server.Get("/progress", [board](const httplib::Request&, httplib::Response& response) {
    response.set_content(board->progress_json(), "application/json");
  });
  server.Get("/metrics", [board](const httplib::Request&, httplib::Response& response) {
    response.set_content(board->metrics_text(), "text/plain; version=0.0.4; charset=utf-8");
  });
  server.Get("/healthz", [](const httplib::Request&, httplib::Response& response) {
    response.set_content("ok\n", "text/plain");
  });
  impl->port = port == 0 ? server.bind_to_any_port(host) : server.bind_to_port(host, port) ? port : -1;
  if (impl->port <= 0)
    return fail(
        contract::ExitCode::kPortInUse,
        "Port " + std::to_string(port) + " (" + contract::kEnvAgentPort +
            ") of the agent's /progress can't be opened; end the program that has it, or choose another by " +
            contract::kEnvAgentPort + ".");
  std::thread([impl] { impl->server.listen_after_bind(); }).detach();
  // stop() does nothing to a server that does not run yet.
  while (!server.is_running()) std::this_thread::yield();
  return std::unique_ptr<StatusServer>(new StatusServer(std::move(impl)));
}

}  // namespace coxswain
