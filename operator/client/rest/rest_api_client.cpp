#include "operator/client/rest/rest_api_client.h"

#include <random>
#include <thread>

#include "operator/client/rest/api_answer.h"
#include "operator/client/rest/api_request.h"
#include "operator/client/rest/cpprest_transport.h"
#include "operator/client/rest/proxy.h"

namespace coxswain {

namespace {

double random_fraction() {
  static thread_local std::mt19937_64 engine{std::random_device{}()};
  return std::uniform_real_distribution<double>(0, 1)(engine);
}

}  // namespace

RestClientTiming RestClientTiming::real() {
  return {[] { return std::chrono::steady_clock::now(); },
          [](std::chrono::steady_clock::duration wait) { std::this_thread::sleep_for(wait); },
          random_fraction};
}

Result<std::unique_ptr<RestApiClient>> RestApiClient::connect(ClusterAccess access, RestClientOptions options,
                                                              const EnvironmentLookup& environment) {
  auto proxy = proxy_for(access.server, access.proxy_url, environment);
  if (!proxy) return bad_input(access.source + ": " + proxy.error().message);
  auto credentials = std::make_shared<Credentials>(access);
  if (auto headers = credentials->headers(); !headers) return tl::unexpected(headers.error());
  TransportSettings settings;
  settings.server = access.server;
  settings.tls.verify = !access.skip_verify;
  settings.tls.server_name = access.tls_server_name.empty() ? access.server.host : access.tls_server_name;
  settings.tls.material = [credentials] { return credentials->tls_material(); };
  settings.proxy = std::move(*proxy);
  settings.request_idle_timeout = options.request_timeout;
  settings.stream_idle_timeout = options.watch_idle_timeout;
  settings.compression = access.compression;
  if (access.server.tls()) {
    if (auto checked = check_tls(settings.tls); !checked) {
      return bad_input(access.source + ": " + checked.error().message);
    }
  }
  return std::make_unique<RestApiClient>(make_cpprest_transport(std::move(settings)), std::move(credentials),
                                         std::move(options), RestClientTiming::real());
}

RestApiClient::RestApiClient(std::unique_ptr<HttpTransport> transport,
                             std::shared_ptr<Credentials> credentials, RestClientOptions options,
                             RestClientTiming timing)
    : transport_(std::move(transport)),
      credentials_(std::move(credentials)),
      options_(std::move(options)),
      timing_(std::move(timing)),
      limiter_(options_.queries_per_second, options_.burst) {}

HttpResult RestApiClient::send_once(const Call& call, const Exchange& exchange) {
  const auto wait = limiter_.reserve(timing_.now());
  if (wait > std::chrono::steady_clock::duration::zero()) timing_.sleep(wait);
  const auto begin = timing_.now();
  HttpResult result = exchange(call.request);
  if (options_.on_request) {
    options_.on_request({call.verb, call.resource, result ? result->status : 0, timing_.now() - begin});
  }
  return result;
}

HttpResult RestApiClient::send_with_retries(Call call, const Exchange& exchange) {
  call.request.headers.emplace_back("User-Agent", options_.user_agent);
  const auto own_headers = call.request.headers;
  bool refreshed = false;
  for (int attempt = 1;; ++attempt) {
    const auto credential = credentials_->headers();
    if (!credential) {
      return tl::unexpected<HttpFailure>({HttpFailure::Kind::kUntrusted, credential.error().message});
    }
    call.request.headers = own_headers;
    call.request.headers.insert(call.request.headers.end(), credential->begin(), credential->end());
    HttpResult result = send_once(call, exchange);
    if (result && result->status == 401 && !refreshed) {
      refreshed = true;
      const auto fresh = credentials_->refresh(*credential);
      if (fresh.certificate) transport_->reconnect();
      if (fresh.again) continue;
    }
    const auto wait = options_.retry.wait_before_retry(call.request, result, attempt, timing_.random());
    if (!wait) return result;
    timing_.sleep(*wait);
  }
}

HttpResult RestApiClient::send(Call call) {
  return send_with_retries(std::move(call), [this](const HttpRequest& request) {
    return transport_->send(request, options_.request_timeout);
  });
}

ApiResult<Json> RestApiClient::get(const Resource& resource, const std::string& ns, const std::string& name) {
  return api_answer::object(send({"get", resource.plural, api_request::get(resource, ns, name)}));
}

ApiResult<ObjectList> RestApiClient::list(const Resource& resource, const std::string& ns,
                                          const ListOptions& options) {
  return api_answer::list(send({"list", resource.plural, api_request::list(resource, ns, options)}), resource,
                          options.unread);
}

ApiResult<std::unique_ptr<Watch>> RestApiClient::watch(const Resource& resource, const std::string& ns,
                                                       const WatchOptions& options) {
  std::shared_ptr<WatchQueue> queue;
  std::unique_ptr<HttpStream> stream;
  const HttpResult result =
      send_with_retries({"watch", resource.plural, api_request::watch(resource, ns, options)},
                        [&](const HttpRequest& request) -> HttpResult {
                          queue = std::make_shared<WatchQueue>(options_.watch, options.on_ready);
                          auto opened = transport_->open(request, options_.request_timeout, queue);
                          if (!opened) return tl::unexpected(opened.error());
                          stream = std::move(opened->stream);
                          return std::move(opened->response);
                        });
  if (!result) return tl::unexpected(api_answer::error(result.error()));
  if (!stream) return tl::unexpected(api_answer::error(*result));
  return std::make_unique<RestWatch>(resource, options.unread, std::move(queue), std::move(stream));
}

ApiResult<Json> RestApiClient::create(const Resource& resource, const std::string& ns, const Json& object,
                                      const WriteOptions& options) {
  return api_answer::object(
      send({"create", resource.plural, api_request::create(resource, ns, object, options)}), resource);
}

ApiResult<Json> RestApiClient::update(const Resource& resource, const std::string& ns, const Json& object,
                                      const WriteOptions& options) {
  auto request = api_request::update(resource, ns, object, options, "");
  if (!request) return tl::unexpected(request.error());
  return api_answer::object(send({"update", resource.plural, std::move(*request)}));
}

ApiResult<Json> RestApiClient::update_status(const Resource& resource, const std::string& ns,
                                             const Json& object, const WriteOptions& options) {
  auto request = api_request::update(resource, ns, object, options, "status");
  if (!request) return tl::unexpected(request.error());
  return api_answer::object(send({"update", resource.plural + "/status", std::move(*request)}));
}

ApiResult<Json> RestApiClient::merge_patch(const Resource& resource, const std::string& ns,
                                           const std::string& name, const Json& patch,
                                           const WriteOptions& options) {
  return api_answer::object(
      send({"patch", resource.plural, api_request::merge_patch(resource, ns, name, patch, options)}));
}

ApiResult<Json> RestApiClient::remove(const Resource& resource, const std::string& ns,
                                      const std::string& name, const DeleteOptions& options) {
  return api_answer::object(
      send({"delete", resource.plural, api_request::remove(resource, ns, name, options)}));
}

}  // namespace coxswain
