// The ApiClient of a real API server. It adds to one HTTP exchange what a good client owes its server: fresh
// credentials, a limit on its own rate, and retries where they are safe.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "contract/result.h"
#include "operator/client/api_client.h"
#include "operator/client/rest/cluster_access.h"
#include "operator/client/rest/credentials.h"
#include "operator/client/rest/http_transport.h"
#include "operator/client/rest/rate_limiter.h"
#include "operator/client/rest/request_record.h"
#include "operator/client/rest/rest_watch.h"
#include "operator/client/rest/retry_policy.h"

namespace coxswain {

struct RestClientOptions {
  // The client's own limit; an API server's priority and fairness is the other one. Watches count as one.
  double queries_per_second = 50;
  int burst = 100;
  std::chrono::milliseconds request_timeout{30'000};     // one exchange, whole
  std::chrono::milliseconds watch_idle_timeout{90'000};  // servers send a bookmark about each minute
  RetryPolicy retry;
  WatchLimits watch;
  std::string user_agent = "coxswain-operator";
  // Called after each exchange, retries included, from the thread that asked.
  std::function<void(const RequestRecord&)> on_request;
};

// How time passes for a client; tests have their own.
struct RestClientTiming {
  std::function<std::chrono::steady_clock::time_point()> now;
  std::function<void(std::chrono::steady_clock::duration)> sleep;
  std::function<double()> random;  // from [0, 1)

  static RestClientTiming real();
};

class RestApiClient : public ApiClient {
 public:
  // Reads the files and runs the plugin that `access` names, so that what is wrong with them is said now; the
  // server is not asked anything yet. The environment is asked for proxies.
  static Result<std::unique_ptr<RestApiClient>> connect(ClusterAccess access, RestClientOptions options,
                                                        const EnvironmentLookup& environment);

  RestApiClient(std::unique_ptr<HttpTransport> transport, std::shared_ptr<Credentials> credentials,
                RestClientOptions options, RestClientTiming timing);

  ApiResult<Json> get(const Resource&, const std::string& ns, const std::string& name) override;
  ApiResult<ObjectList> list(const Resource&, const std::string& ns, const ListOptions&) override;
  ApiResult<std::unique_ptr<Watch>> watch(const Resource&, const std::string& ns,
                                          const WatchOptions&) override;
  ApiResult<Json> create(const Resource&, const std::string& ns, const Json& object,
                         const WriteOptions&) override;
  ApiResult<Json> update(const Resource&, const std::string& ns, const Json& object,
                         const WriteOptions&) override;
  ApiResult<Json> update_status(const Resource&, const std::string& ns, const Json& object,
                                const WriteOptions&) override;
  ApiResult<Json> merge_patch(const Resource&, const std::string& ns, const std::string& name,
                              const Json& patch, const WriteOptions&) override;
  ApiResult<Json> remove(const Resource&, const std::string& ns, const std::string& name,
                         const DeleteOptions&) override;

 private:
  struct Call {
    std::string verb;
    std::string resource;
    HttpRequest request;
  };
  using Exchange = std::function<HttpResult(const HttpRequest&)>;

  HttpResult send(Call call);
  HttpResult send_with_retries(Call call, const Exchange& exchange);
  HttpResult send_once(const Call& call, const Exchange& exchange);

  std::unique_ptr<HttpTransport> transport_;
  const std::shared_ptr<Credentials> credentials_;
  const RestClientOptions options_;
  const RestClientTiming timing_;
  RateLimiter limiter_;
};

}  // namespace coxswain
