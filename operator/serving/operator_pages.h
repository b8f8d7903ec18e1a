// What the operator serves over HTTP: /healthz and /readyz for the kubelet at one address, /metrics for
// Prometheus at another.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "contract/result.h"
#include "runtime/serving/http_server.h"

namespace coxswain {

inline constexpr char kDefaultHealthAddress[] = ":8081";
inline constexpr char kDefaultMetricsAddress[] = ":8080";

// Nothing: ready; else why not, as a sentence. Called from the server's threads.
using Readiness = std::function<std::optional<std::string>()>;

// /healthz answers 200 as long as the program can answer at all; /readyz 200, or 503 with the reason. Null:
// switched off by `address`, see parse_bind_address. Failures name `flag`: kBadInput for an address that is
// none, kPortInUse for one that can't be opened.
Result<std::unique_ptr<HttpServer>> serve_health(const std::string& flag, const std::string& address,
                                                 Readiness readiness);

// /metrics answers with what `text` gives: Prometheus' text format 0.0.4. The rest as above.
Result<std::unique_ptr<HttpServer>> serve_metrics(const std::string& flag, const std::string& address,
                                                  std::function<std::string()> text);

}  // namespace coxswain
