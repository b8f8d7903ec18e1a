#include "operator/client/rest/retry_policy.h"

#include <algorithm>
#include <charconv>

namespace coxswain {

namespace {

bool worth_retrying(const HttpRequest& request, const HttpResult& result) {
  if (!result) {
    switch (result.error().kind) {
      case HttpFailure::Kind::kNotSent:
        return true;
      case HttpFailure::Kind::kNoAnswer:
        return request.method == "GET";
      case HttpFailure::Kind::kTimeout:
      case HttpFailure::Kind::kUntrusted:
        return false;
    }
    return false;
  }
  const int status = result->status;
  if (status == 429) return true;
  return request.method != "POST" && (status == 500 || status == 502 || status == 503 || status == 504);
}

}  // namespace

std::optional<std::chrono::milliseconds> RetryPolicy::wait_before_retry(const HttpRequest& request,
                                                                        const HttpResult& result, int attempt,
                                                                        double random) const {
  if (attempt >= max_attempts || !worth_retrying(request, result)) return std::nullopt;
  std::chrono::milliseconds wait = std::min(max_wait, base_wait * (1 << std::min(attempt - 1, 16)));
  if (result) {
    if (const auto asked = parse_retry_after(result->retry_after)) {
      if (*asked > max_wait) return std::nullopt;
      wait = std::max<std::chrono::milliseconds>(*asked, base_wait);
    }
  }
  return wait + std::chrono::milliseconds(static_cast<int64_t>(wait.count() * random / 2));
}

std::optional<std::chrono::seconds> parse_retry_after(const std::string& header) {
  int seconds = 0;
  const char* end = header.data() + header.size();
  const auto [stop, error] = std::from_chars(header.data(), end, seconds);
  if (header.empty() || error != std::errc() || stop != end || seconds < 0) return std::nullopt;
  return std::chrono::seconds(seconds);
}

}  // namespace coxswain
