#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/client/rest/rate_limiter.h"
#include "operator/client/rest/retry_policy.h"

namespace coxswain {
namespace {

using namespace std::chrono_literals;
using Kind = HttpFailure::Kind;

const RateLimiter::TimePoint kStart{1h};

TEST(RateLimiter, LetsABurstThroughAndThenSpreadsRequests) {
  RateLimiter limiter(10, 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limiter.reserve(kStart), 0ns);
  EXPECT_EQ(limiter.reserve(kStart), 100ms);
  EXPECT_EQ(limiter.reserve(kStart), 200ms);
  // The two who wait have their tokens by then.
  EXPECT_EQ(limiter.reserve(kStart + 250ms), 50ms);
}

TEST(RateLimiter, QuietTimeFillsItUpToTheBurst) {
  RateLimiter limiter(10, 3);
  for (int i = 0; i < 3; ++i) limiter.reserve(kStart);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limiter.reserve(kStart + 1h), 0ns);
  EXPECT_GT(limiter.reserve(kStart + 1h), 0ns);
}

TEST(RateLimiter, AClockThatStandsStillOrGoesBackGivesNothing) {
  RateLimiter limiter(10, 1);
  limiter.reserve(kStart);
  EXPECT_EQ(limiter.reserve(kStart - 1h), 100ms);
}

TEST(RateLimiter, NoRateMeansNoLimit) {
  RateLimiter limiter(0, 1);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(limiter.reserve(kStart), 0ns);
}

HttpRequest request(const std::string& method) {
  return {method, "/", "", "", "", {}};
}

struct RetryCase {
  std::string method;
  int status;  // 0: failed as `kind`
  Kind kind;
  bool retried;
};

TEST(RetryPolicy, WhatIsSafeIsRetried) {
  const Kind any = Kind::kNoAnswer;
  const std::vector<RetryCase> cases{
      {"GET", 200, any, false},
      {"GET", 404, any, false},
      {"PUT", 409, any, false},
      {"GET", 401, any, false},
      {"GET", 429, any, true},
      {"POST", 429, any, true},
      {"GET", 500, any, true},
      {"PUT", 503, any, true},
      {"PATCH", 502, any, true},
      {"DELETE", 504, any, true},
      {"POST", 500, any, false},
      {"POST", 503, any, false},
      {"GET", 501, any, false},
      {"GET", 0, Kind::kNotSent, true},
      {"POST", 0, Kind::kNotSent, true},
      {"GET", 0, Kind::kNoAnswer, true},
      {"POST", 0, Kind::kNoAnswer, false},
      {"PUT", 0, Kind::kNoAnswer, false},
      {"DELETE", 0, Kind::kNoAnswer, false},
      {"GET", 0, Kind::kTimeout, false},
      {"GET", 0, Kind::kUntrusted, false},
  };
  for (const auto& c : cases) {
    const HttpResult result = c.status == 0 ? HttpResult(tl::unexpected<HttpFailure>({c.kind, ""}))
                                            : HttpResult(HttpResponse{c.status, "", ""});
    EXPECT_EQ(RetryPolicy().wait_before_retry(request(c.method), result, 1, 0).has_value(), c.retried)
        << c.method << " " << c.status << " " << static_cast<int>(c.kind);
  }
}

TEST(RetryPolicy, WaitsDoubleWithJitterUntilAttemptsAreUsedUp) {
  const RetryPolicy policy{.max_attempts = 4, .base_wait = 200ms, .max_wait = 10s};
  const HttpResult busy = HttpResponse{503, "", ""};
  EXPECT_EQ(policy.wait_before_retry(request("GET"), busy, 1, 0), 200ms);
  EXPECT_EQ(policy.wait_before_retry(request("GET"), busy, 2, 0), 400ms);
  EXPECT_EQ(policy.wait_before_retry(request("GET"), busy, 3, 0.5), 1000ms);
  EXPECT_EQ(policy.wait_before_retry(request("GET"), busy, 4, 0), std::nullopt);
}

TEST(RetryPolicy, RetryAfterIsKeptTo) {
  const RetryPolicy policy;
  const auto wait = [&](const std::string& header) {
    return policy.wait_before_retry(request("GET"), HttpResponse{429, header, ""}, 1, 0);
  };
  EXPECT_EQ(wait("3"), 3s);
  EXPECT_EQ(wait("0"), policy.base_wait);
  EXPECT_EQ(wait("Tue, 29 Oct 2030 16:56:32 GMT"), policy.base_wait);
  EXPECT_EQ(wait("-1"), policy.base_wait);
  // Too long to sit and wait: the caller gets the answer, retry_after in it.
  EXPECT_EQ(wait("3600"), std::nullopt);
}

}  // namespace
}  // namespace coxswain
