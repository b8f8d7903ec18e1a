// Real sockets on loopback, and clients that don't behave. Run under ThreadSanitizer too.
#include "operator/serving/operator_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/serving/loopback.h"

namespace coxswain {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kFlag[] = "--health-probe-bind-address";
constexpr char kAnywhere[] = "127.0.0.1:0";

std::unique_ptr<HttpServer> healthy(Readiness readiness = [] { return std::nullopt; }) {
  auto server = serve_health(kFlag, kAnywhere, std::move(readiness));
  if (!server) throw std::runtime_error(server.error().message);
  return *std::move(server);
}

TEST(OperatorPages, ReadyOnlyOnceItIs) {
  std::mutex mutex;
  std::optional<std::string> reason = "The caches are not filled yet.";
  const auto server = healthy([&] {
    std::lock_guard lock(mutex);
    return reason;
  });
  EXPECT_THAT(http_get(server->port(), "/healthz"),
              AllOf(StartsWith("HTTP/1.1 200"), EndsWith("\r\n\r\nok\n")));
  EXPECT_THAT(http_get(server->port(), "/readyz"),
              AllOf(StartsWith("HTTP/1.1 503"), EndsWith("\r\n\r\nThe caches are not filled yet.\n")));
  {
    std::lock_guard lock(mutex);
    reason.reset();
  }
  EXPECT_THAT(http_get(server->port(), "/readyz"), StartsWith("HTTP/1.1 200"));
}

TEST(OperatorPages, MetricsAreNotServedBesideHealth) {
  const auto health = healthy();
  EXPECT_THAT(http_get(health->port(), "/metrics"), StartsWith("HTTP/1.1 404"));
  const auto metrics =
      serve_metrics("--metrics-bind-address", kAnywhere, [] { return std::string("a 1\n"); });
  ASSERT_TRUE(metrics);
  EXPECT_THAT(http_get((*metrics)->port(), "/metrics"),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("text/plain; version=0.0.4; charset=utf-8"),
                    EndsWith("\r\n\r\na 1\n")));
  EXPECT_THAT(http_get((*metrics)->port(), "/metrics?x=1"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(http_get((*metrics)->port(), "/readyz"), StartsWith("HTTP/1.1 404"));
}

TEST(OperatorPages, OnlyReads) {
  const auto server = healthy();
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH"}) {
    LoopbackClient client(server->port());
    client.send(std::string(method) + " /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    EXPECT_THAT(client.receive(), StartsWith("HTTP/1.1 405")) << method;
  }
  LoopbackClient head(server->port());
  head.send("HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(head.receive(), AllOf(StartsWith("HTTP/1.1 200"), EndsWith("\r\n\r\n")));
}

TEST(OperatorPages, APageThatThrowsIsA500WithoutTheWords) {
  const auto server =
      serve_metrics("f", kAnywhere, []() -> std::string { throw std::runtime_error("a secret"); });
  ASSERT_TRUE(server);
  EXPECT_THAT(http_get((*server)->port(), "/metrics"),
              AllOf(StartsWith("HTTP/1.1 500"), Not(HasSubstr("secret"))));
}

TEST(OperatorPages, SwitchedOff) {
  for (const char* off : {"", "0"}) {
    const auto server = serve_health(kFlag, off, [] { return std::nullopt; });
    ASSERT_TRUE(server);
    EXPECT_EQ(*server, nullptr);
  }
}

TEST(OperatorPages, AnAddressThatIsTakenIsNamed) {
  const auto first = healthy();
  const std::string address = "127.0.0.1:" + std::to_string(first->port());
  const auto second = serve_health(kFlag, address, [] { return std::nullopt; });
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, contract::ExitCode::kPortInUse);
  EXPECT_THAT(second.error().message, AllOf(HasSubstr(kFlag), HasSubstr(address), HasSubstr("taken")));
}

TEST(OperatorPages, AnAddressOfAnotherMachineIsNamed) {
  const auto server = serve_health(kFlag, "192.0.2.1:0", [] { return std::nullopt; });
  ASSERT_FALSE(server);
  EXPECT_THAT(server.error().message, AllOf(HasSubstr(kFlag), HasSubstr("no address of this machine")));
}

TEST(OperatorPages, AllAddressesAreIPv4AndIPv6) {
  auto server = serve_health(kFlag, ":0", [] { return std::nullopt; });
  ASSERT_TRUE(server) << server.error().message;
  EXPECT_THAT(http_get((*server)->port(), "/healthz"), StartsWith("HTTP/1.1 200"));
  if (!has_ipv6()) GTEST_SKIP() << "no IPv6 on this machine";
  EXPECT_THAT(http_get((*server)->port(), "/healthz", true), StartsWith("HTTP/1.1 200"));
  server = serve_health(kFlag, "[::1]:0", [] { return std::nullopt; });
  ASSERT_TRUE(server) << server.error().message;
  EXPECT_THAT(http_get((*server)->port(), "/healthz", true), StartsWith("HTTP/1.1 200"));
}

TEST(OperatorPages, AClientThatSendsAByteNowAndThenIsCutOff) {
  auto pages = HttpPages{{"/", [] { return HttpPage{200, "text/plain", "ok"}; }}};
  const auto server = HttpServer::start(
      std::move(pages),
      {.host = "127.0.0.1", .port = 0, .threads = 1, .connection_limit = std::chrono::milliseconds(300)});
  ASSERT_TRUE(server);
  std::vector<std::unique_ptr<LoopbackClient>> slow;
  for (int i = 0; i < 4; ++i) slow.push_back(std::make_unique<LoopbackClient>((*server)->port()));
  std::jthread drip([&](std::stop_token stop) {
    while (!stop.stop_requested()) {
      for (auto& client : slow) client->send("G");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  EXPECT_THAT(http_get((*server)->port(), "/"), StartsWith("HTTP/1.1 200")) << "though one thread serves all";
}

TEST(OperatorPages, ARequestWithoutEndIsCutOffByItsSize) {
  const auto server = healthy();
  LoopbackClient client(server->port());
  const std::string header = "X-A: " + std::string(4000, 'a') + "\r\n";
  bool open = client.send("GET /healthz HTTP/1.1\r\n");
  for (int i = 0; i < 100000 && open; ++i) open = client.send(header);
  EXPECT_FALSE(open);
}

TEST(OperatorPages, ClientsDontKeepItFromEnding) {
  auto pages = HttpPages{{"/", [] { return HttpPage{200, "text/plain", std::string(50 << 20, 'a')}; }}};
  auto server =
      HttpServer::start(std::move(pages), {.host = "127.0.0.1", .connection_limit = std::chrono::hours(1)});
  ASSERT_TRUE(server);
  LoopbackClient silent((*server)->port());
  LoopbackClient half((*server)->port());
  half.send("GET / HT");
  LoopbackClient never_reads((*server)->port());
  never_reads.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(http_get((*server)->port(), "/nothing"), StartsWith("HTTP/1.1 404"));
  server->reset();  // the test's own time limit would end it
  EXPECT_EQ(half.receive(), "");
}

TEST(OperatorPages, ServesManyAtOnce) {
  std::atomic<int> asked = 0;
  const auto server = healthy([&]() -> std::optional<std::string> {
    ++asked;
    return std::nullopt;
  });
  std::atomic<int> good = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        for (int j = 0; j < 20; ++j) good += http_get(server->port(), "/readyz").starts_with("HTTP/1.1 200");
      });
    }
  }
  EXPECT_EQ(good, 160);
  EXPECT_EQ(asked, 160);
}

}  // namespace
}  // namespace coxswain
