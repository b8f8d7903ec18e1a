// When a request is sent again, and after how long. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "operator/client/rest/http_transport.h"

namespace coxswain {

struct RetryPolicy {
  int max_attempts = 4;                        // the first one included
  std::chrono::milliseconds base_wait{200};    // after the first attempt; doubled each time
  std::chrono::milliseconds max_wait{10'000};  // a server that asks for more is left to the caller

  // attempt: how many have been made, from 1. random: from [0, 1), spreads the waits of many clients over
  // half as much again. None: the answer or failure stands.
  //
  // A refusal (429, or a request that never left) is retried whatever the method. 500, 502, 503 and 504 are
  // retried unless the method is POST: it might have been carried out. A lost answer is retried for GET only;
  // what became of a write is for the caller to find out.
  std::optional<std::chrono::milliseconds> wait_before_retry(const HttpRequest& request,
                                                             const HttpResult& result, int attempt,
                                                             double random) const;
};

// Retry-After: seconds; absent, empty or a date: none.
std::optional<std::chrono::seconds> parse_retry_after(const std::string& header);

}  // namespace coxswain
