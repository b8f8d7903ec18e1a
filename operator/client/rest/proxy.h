// Which proxy, if any, stands between us and the API server: the cluster's proxy-url, else the environment by
// the rules that Kubernetes' own programs follow.
#pragma once

#include <optional>
#include <string>

#include "contract/result.h"
#include "operator/client/rest/url.h"
#include "runtime/config/environment.h"

namespace coxswain {

// HTTPS_PROXY (for https servers) or HTTP_PROXY, and NO_PROXY; in capitals before small letters. `proxy_url`,
// the cluster's own, wins over them and knows no exceptions. Errors: a URL that can't be read, or a proxy
// that speaks anything but HTTP.
Result<std::optional<Url>> proxy_for(const Url& server, const std::string& proxy_url,
                                     const EnvironmentLookup& environment);

// no_proxy: comma-separated "*", hosts (a domain stands for its subdomains too, ".domain" only for those), IP
// addresses and CIDR ranges; host and address may have a port. Loopback is never proxied.
bool bypasses_proxy(const std::string& no_proxy, const std::string& host, int port);

}  // namespace coxswain
