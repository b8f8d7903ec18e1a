#include "operator/serving/operator_pages.h"

#include <utility>

#include "operator/serving/bind_address.h"

namespace coxswain {

namespace {

constexpr char kText[] = "text/plain; charset=utf-8";

Result<std::unique_ptr<HttpServer>> serve(const std::string& flag, const std::string& address,
                                          HttpPages pages) {
  const auto bind = parse_bind_address(flag, address);
  if (!bind) return tl::unexpected(bind.error());
  if (!*bind) return nullptr;
  auto server = HttpServer::start(std::move(pages), {.host = (*bind)->host, .port = (*bind)->port});
  if (server) return *std::move(server);
  return fail(contract::ExitCode::kPortInUse, flag + ": \"" + address +
                                                  "\" can't be listened on: " + server.error() +
                                                  "; choose another address, or switch it off with "
                                                  "0.");
}

}  // namespace

Result<std::unique_ptr<HttpServer>> serve_health(const std::string& flag, const std::string& address,
                                                 Readiness readiness) {
  HttpPages pages;
  pages["/healthz"] = [] { return HttpPage{200, kText, "ok\n"}; };
  pages["/readyz"] = [readiness = std::move(readiness)] {
    const auto reason = readiness();
    return reason ? HttpPage{503, kText, *reason + "\n"} : HttpPage{200, kText, "ok\n"};
  };
  return serve(flag, address, std::move(pages));
}

Result<std::unique_ptr<HttpServer>> serve_metrics(const std::string& flag, const std::string& address,
                                                  std::function<std::string()> text) {
  HttpPages pages;
  pages["/metrics"] = [text = std::move(text)] {
    return HttpPage{200, "text/plain; version=0.0.4; charset=utf-8", text()};
  };
  return serve(flag, address, std::move(pages));
}

}  // namespace coxswain
