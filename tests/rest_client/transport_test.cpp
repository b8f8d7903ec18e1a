// The one file that speaks to a network, against real servers on loopback.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>

#include "operator/client/rest/cpprest_transport.h"
#include "tests/rest_client/test_server.h"

namespace coxswain {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using Kind = HttpFailure::Kind;

// Only what must happen is waited for: this bound is met by a broken client alone.
constexpr auto kForever = 30s;

HttpRequest get_request(const std::string& target = "/api/v1/pods") {
  return {"GET", target, "application/json", "", "", {}};
}

TransportSettings settings_for(const std::string& host, int port, TlsMaterial material) {
  TransportSettings settings;
  settings.server = {"https", "", "", host, port, ""};
  settings.tls.server_name = host;
  settings.tls.material = [material] { return Result<TlsMaterial>(material); };
  return settings;
}

TransportSettings plain(int port) {
  TransportSettings settings;
  settings.server = {"http", "", "", "127.0.0.1", port, ""};
  return settings;
}

void ok(const httplib::Request&, httplib::Response& response) {
  response.set_content("{}", "application/json");
}

// Collects a streamed body; may be told to hold the stream back after each piece.
class Collector : public HttpBodySink {
 public:
  explicit Collector(bool greedy = true) : greedy_(greedy) {}
  bool on_bytes(std::string_view bytes) override {
    std::lock_guard lock(mutex_);
    text_ += bytes;
    changed_.notify_all();
    return greedy_;
  }
  void on_end() override {
    std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  bool wait_for(const std::string& text) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kForever, [&] { return text_ == text; });
  }
  bool wait_for_end() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kForever, [&] { return ended_; });
  }
  std::string text() {
    std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  const bool greedy_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_;
  bool ended_ = false;
};

// --- Trust
struct TrustCase {
  std::string name;
  std::string host;
  std::string subject_alt_name;
  std::chrono::seconds valid_for;
  bool same_ca;
  std::string common_name;
  std::string refusal;  // "": trusted
};

class Trust : public ::testing::TestWithParam<TrustCase> {};

TEST_P(Trust, OfTheServersCertificate) {
  const TrustCase& c = GetParam();
  const TestAuthority authority;
  const TestAuthority other("another authority");
  HttpsServer server(authority.issue({c.common_name, c.subject_alt_name, c.valid_for}), ok);
  auto transport = make_cpprest_transport(
      settings_for(c.host, server.port(), {(c.same_ca ? authority : other).ca_pem(), "", ""}));
  const auto result = transport->send(get_request(), kForever);
  if (c.refusal.empty()) {
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->status, 200);
    return;
  }
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, Kind::kUntrusted) << result.error().message;
  EXPECT_THAT(result.error().message, HasSubstr(c.refusal));
}

INSTANTIATE_TEST_SUITE_P(
    Certificates, Trust,
    ::testing::Values(
        TrustCase{"ByAddress", "127.0.0.1", "IP:127.0.0.1", 1h, true, "x", ""},
        TrustCase{"ByName", "localhost", "DNS:localhost", 1h, true, "x", ""},
        TrustCase{"WrongName", "localhost", "DNS:example.com", 1h, true, "x", "not for localhost"},
        TrustCase{"WrongAddress", "127.0.0.1", "IP:127.0.0.2", 1h, true, "x", "not for 127.0.0.1"},
        TrustCase{"AddressAsName", "127.0.0.1", "DNS:127.0.0.1", 1h, true, "x", "not for 127.0.0.1"},
        TrustCase{"OnlyTheCommonName", "localhost", "", 1h, true, "localhost", "not for localhost"},
        TrustCase{"WrongAuthority", "127.0.0.1", "IP:127.0.0.1", 1h, false, "x", "certificate was refused"},
        TrustCase{"Expired", "127.0.0.1", "IP:127.0.0.1", -1h, true, "x", "expired"}),
    [](const auto& info) { return info.param.name; });

TEST(TlsOptions, ServerNameReplacesTheHost) {
  const TestAuthority authority;
  HttpsServer server(authority.issue({"x", "DNS:kubernetes.default.svc"}), ok);
  auto settings = settings_for("127.0.0.1", server.port(), {authority.ca_pem(), "", ""});
  settings.tls.server_name = "kubernetes.default.svc";
  const auto result = make_cpprest_transport(settings)->send(get_request(), kForever);
  ASSERT_TRUE(result) << result.error().message;
}

TEST(TlsOptions, SkippingVerificationTakesAnyCertificate) {
  const TestAuthority authority;
  HttpsServer server(authority.issue({"x", "DNS:example.com", -1h}), ok);
  auto settings = settings_for("127.0.0.1", server.port(), {});
  settings.tls.verify = false;
  const auto result = make_cpprest_transport(settings)->send(get_request(), kForever);
  ASSERT_TRUE(result) << result.error().message;
}

TEST(TlsOptions, Ipv6AddressesWork) {
  const TestAuthority authority;
  std::string host_header;
  HttpsServer server(authority.issue({"x", "IP:::1"}),
                     [&](const httplib::Request& request, httplib::Response& response) {
                       host_header = request.get_header_value("Host");
                       ok(request, response);
                     },
                     {"::1"});
  if (server.port() < 0) GTEST_SKIP() << "this machine has no IPv6";
  const auto transport =
      make_cpprest_transport(settings_for("::1", server.port(), {authority.ca_pem(), "", ""}));
  const auto result = transport->send(get_request(), kForever);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(host_header, "[::1]:" + std::to_string(server.port()));
}

TEST(TlsOptions, TheClientCertificateIsReadAgainForNewConnections) {
  const TestAuthority authority;
  std::mutex mutex;
  std::vector<std::string> subjects;
  HttpsServer server(authority.issue({"x", "IP:127.0.0.1"}),
                     [&](const httplib::Request& request, httplib::Response& response) {
                       X509* peer = SSL_get1_peer_certificate(request.ssl);
                       char name[64] = "";
                       if (peer != nullptr) {
                         X509_NAME_get_text_by_NID(X509_get_subject_name(peer), NID_commonName, name,
                                                   sizeof name);
                       }
                       X509_free(peer);
                       std::lock_guard lock(mutex);
                       subjects.emplace_back(name);
                       ok(request, response);
                     },
                     {"127.0.0.1", authority.ca_pem()});
  std::vector<CertificatePair> pairs{authority.issue({"first"}), authority.issue({"second"})};
  std::atomic<int> used{0};
  auto settings = settings_for("127.0.0.1", server.port(), {});
  settings.tls.material = [&] {
    const auto& pair = pairs[used];
    return Result<TlsMaterial>({authority.ca_pem(), pair.certificate_pem, pair.key_pem});
  };
  auto transport = make_cpprest_transport(settings);
  ASSERT_TRUE(transport->send(get_request(), kForever));
  used = 1;
  transport->reconnect();
  ASSERT_TRUE(transport->send(get_request(), kForever));
  EXPECT_THAT(subjects, ::testing::ElementsAre("first", "second"));
}

TEST(TlsOptions, AServerThatSpeaksOnlyTls11IsRefused) {
  const TestAuthority authority;
  HttpsServer server(authority.issue({"x", "IP:127.0.0.1"}), ok, {"127.0.0.1", "", TLS1_1_VERSION});
  auto transport =
      make_cpprest_transport(settings_for("127.0.0.1", server.port(), {authority.ca_pem(), "", ""}));
  const auto result = transport->send(get_request(), kForever);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, Kind::kNotSent);
}

TEST(TlsOptions, UnreadableMaterialIsSaid) {
  const TestAuthority authority;
  HttpsServer server(authority.issue({"x", "IP:127.0.0.1"}), ok);
  auto settings = settings_for("127.0.0.1", server.port(), {});
  settings.tls.material = [] { return Result<TlsMaterial>(bad_input("client-key: /k can't be read.")); };
  const auto result = make_cpprest_transport(settings)->send(get_request(), kForever);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, Kind::kUntrusted);
  EXPECT_THAT(result.error().message, HasSubstr("client-key: /k can't be read."));
}

// --- Whole answers
TEST(Send, PassesMethodTargetHeadersAndBody) {
  std::promise<std::string> seen;
  RawServer server([&](RawConnection& connection, int) {
    seen.set_value(connection.read_request());
    connection.write(whole_answer(201, "{\"a\":1}", "Retry-After: 7\r\n"));
  });
  auto settings = plain(server.port());
  settings.server.path = "/clusters/one";
  const auto result = make_cpprest_transport(settings)->send({"POST",
                                                              "/api/v1/pods?x=a%2Cb%26c",
                                                              "application/json",
                                                              "application/json",
                                                              "{\"b\":2}",
                                                              {{"X-A", "1"}}},
                                                             kForever);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->status, 201);
  EXPECT_EQ(result->body, "{\"a\":1}");
  EXPECT_EQ(result->retry_after, "7");
  const std::string request = seen.get_future().get();
  EXPECT_THAT(request, ::testing::StartsWith("POST /clusters/one/api/v1/pods?x=a%2Cb%26c HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("X-A:1\r\n"));
  EXPECT_THAT(request, ::testing::EndsWith("\r\n\r\n{\"b\":2}"));
}

TEST(Send, ARefusedConnectionWasNotSent) {
  const auto result = make_cpprest_transport(plain(closed_port()))->send(get_request(), kForever);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, Kind::kNotSent) << result.error().message;
}

TEST(Send, AConnectionLostAfterTheRequestIsNoAnswer) {
  for (const std::string& part :
       {std::string(), std::string("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"a\"")}) {
    RawServer server([&](RawConnection& connection, int) {
      connection.read_request();
      connection.write(part);
    });
    const auto result = make_cpprest_transport(plain(server.port()))
                            ->send({"PUT", "/x", "", "application/json", "{}", {}}, kForever);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind, Kind::kNoAnswer) << result.error().message;
  }
}

TEST(Send, AServerThatStaysSilentTimesOutAndItsConnectionIsClosed) {
  std::promise<void> closed;
  RawServer server([&](RawConnection& connection, int) {
    connection.read_request();
    connection.wait_for_close();
    closed.set_value();
  });
  auto transport = make_cpprest_transport(plain(server.port()));
  const auto result = transport->send(get_request(), 100ms);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, Kind::kTimeout) << result.error().message;
  EXPECT_EQ(closed.get_future().wait_for(kForever), std::future_status::ready);
}

// An answer may be there a moment before its connection is free again, so a few more than one are made.
TEST(Send, ConnectionsAreKeptAndReused) {
  std::atomic<int> connections{0};
  RawServer server([&](RawConnection& connection, int) {
    ++connections;
    while (!connection.read_request().empty()) connection.write(whole_answer(200, "{}"));
  });
  auto transport = make_cpprest_transport(plain(server.port()));
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(transport->send(get_request(), kForever));
  EXPECT_LT(connections, 25);
  transport.reset();
}

// What the server may have carried out before it closed a kept connection must not be carried out twice.
TEST(Send, APostIsNotSentAgainOnAClosedKeptConnection) {
  std::atomic<int> posts{0};
  RawServer server([&](RawConnection& connection, int) {
    for (bool kept = false;; kept = true) {
      const std::string request = connection.read_request();
      if (request.empty()) return;
      if (request.starts_with("POST")) {
        ++posts;
        if (kept) return;
      }
      connection.write(whole_answer(200, "{}"));
    }
  });
  auto transport = make_cpprest_transport(plain(server.port()));
  const HttpRequest post{"POST", "/x", "", "application/json", "{\"kind\":\"Pod\"}", {}};
  int sent = 0;
  HttpResult result;
  do {
    ASSERT_TRUE(transport->send(get_request(), kForever));
    result = transport->send(post, kForever);
    ++sent;
  } while (result && sent < 1000);
  ASSERT_FALSE(result) << "no connection was reused";
  EXPECT_EQ(result.error().kind, Kind::kNoAnswer);
  EXPECT_THAT(result.error().message, HasSubstr("the server closed the connection before it answered"));
  EXPECT_EQ(posts, sent);
  transport.reset();
}

TEST(Send, RedirectsAreNotFollowed) {
  RawServer server([&](RawConnection& connection, int) {
    connection.read_request();
    connection.write(whole_answer(302, "", "Location: http://127.0.0.1:1/\r\n"));
  });
  const auto result = make_cpprest_transport(plain(server.port()))->send(get_request(), kForever);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->status, 302);
}

TEST(Send, TunnelsThroughAProxyWithItsCredentials) {
  std::promise<std::string> seen;
  RawServer proxy([&](RawConnection& connection, int) {
    seen.set_value(connection.read_request());
    connection.write("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
  });
  auto settings = settings_for("api.example.com", 6443, {});
  settings.proxy = Url{"http", "user", "secret", "127.0.0.1", proxy.port(), ""};
  const auto result = make_cpprest_transport(settings)->send(get_request(), kForever);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, Kind::kNotSent);
  const std::string request = seen.get_future().get();
  EXPECT_THAT(request, ::testing::StartsWith("CONNECT api.example.com:6443 HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("Proxy-Authorization: Basic dXNlcjpzZWNyZXQ="));
  EXPECT_THAT(result.error().message, ::testing::Not(HasSubstr("secret")));
}

// Enough for several reads; the API server compresses from 128 KiB on.
TEST(Send, LargeCompressedAnswersComeWhole) {
  const TestAuthority authority;
  std::string body = "{\"items\":[";
  for (int i = 0; i < 60000; ++i) body += "{\"n\":" + std::to_string(i * 7919 % 100003) + "},";
  body.back() = ']';
  body += "}";
  bool offered = false;
  HttpsServer server(authority.issue({"x", "IP:127.0.0.1"}), [&](const httplib::Request& request,
                                                                 httplib::Response& response) {
    offered = request.get_header_value("Accept-Encoding").find("gzip") != std::string::npos;
    response.set_content(body, "application/json");
  });
  for (const bool compression : {true, false}) {
    auto settings = settings_for("127.0.0.1", server.port(), {authority.ca_pem(), "", ""});
    settings.compression = compression;
    const auto result = make_cpprest_transport(settings)->send(get_request(), kForever);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(offered, compression);
    EXPECT_TRUE(result->body == body) << result->body.size() << " of " << body.size() << " bytes";
  }
}

// --- Streams
TEST(Open, BytesComeAsTheyAreSent) {
  std::promise<void> first_seen;
  RawServer server([&](RawConnection& connection, int) {
    connection.read_request();
    connection.write(kChunkedHead + chunk("one\n"));
    first_seen.get_future().wait();
    connection.write(chunk("two\n") + "0\r\n\r\n");
  });
  auto transport = make_cpprest_transport(plain(server.port()));
  auto sink = std::make_shared<Collector>();
  auto opened = transport->open(get_request(), kForever, sink);
  ASSERT_TRUE(opened) << opened.error().message;
  ASSERT_NE(opened->stream, nullptr);
  ASSERT_TRUE(sink->wait_for("one\n"));
  first_seen.set_value();
  EXPECT_TRUE(sink->wait_for_end());
  EXPECT_EQ(sink->text(), "one\ntwo\n");
}

TEST(Open, ARefusalComesWithItsBody) {
  RawServer server([&](RawConnection& connection, int) {
    connection.read_request();
    connection.write(whole_answer(410, "{\"kind\":\"Status\"}"));
  });
  auto transport = make_cpprest_transport(plain(server.port()));
  const auto opened = transport->open(get_request(), kForever, std::make_shared<Collector>());
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->response.status, 410);
  EXPECT_EQ(opened->response.body, "{\"kind\":\"Status\"}");
  EXPECT_EQ(opened->stream, nullptr);
}

TEST(Open, ACutStreamEnds) {
  for (const bool by_reset : {false, true}) {
    RawServer server([&](RawConnection& connection, int) {
      connection.read_request();
      connection.write(kChunkedHead + chunk("one\n") + "40\r\nhal");
      if (by_reset) connection.reset();
    });
    auto transport = make_cpprest_transport(plain(server.port()));
    auto sink = std::make_shared<Collector>();
    auto opened = transport->open(get_request(), kForever, sink);
    // A reset may overtake the head.
    if (by_reset && !opened) continue;
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_TRUE(sink->wait_for_end());
  }
}

TEST(Open, AStalledStreamEnds) {
  RawServer server([&](RawConnection& connection, int) {
    connection.read_request();
    connection.write(kChunkedHead + chunk("one\n"));
    connection.wait_for_close();
  });
  auto settings = plain(server.port());
  settings.stream_idle_timeout = 200ms;
  auto transport = make_cpprest_transport(settings);
  auto sink = std::make_shared<Collector>();
  auto opened = transport->open(get_request(), kForever, sink);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_TRUE(sink->wait_for_end());
  EXPECT_EQ(sink->text(), "one\n");
}

TEST(Open, DestroyingTheStreamClosesTheConnection) {
  std::promise<void> closed;
  RawServer server([&](RawConnection& connection, int) {
    connection.read_request();
    connection.write(kChunkedHead + chunk("one\n"));
    connection.wait_for_close();
    closed.set_value();
  });
  auto transport = make_cpprest_transport(plain(server.port()));
  auto sink = std::make_shared<Collector>();
  auto opened = transport->open(get_request(), kForever, sink);
  ASSERT_TRUE(opened) << opened.error().message;
  opened->stream.reset();
  EXPECT_EQ(closed.get_future().wait_for(kForever), std::future_status::ready);
}

TEST(Open, AServerThatSendsNoHeadTimesOut) {
  std::promise<void> closed;
  RawServer server([&](RawConnection& connection, int) {
    connection.read_request();
    connection.wait_for_close();
    closed.set_value();
  });
  auto transport = make_cpprest_transport(plain(server.port()));
  const auto opened = transport->open(get_request(), 100ms, std::make_shared<Collector>());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, Kind::kTimeout);
  EXPECT_EQ(closed.get_future().wait_for(kForever), std::future_status::ready);
}

TEST(Open, ASinkThatIsFullHoldsTheStreamBackUntilItResumes) {
  RawServer server([&](RawConnection& connection, int) {
    connection.read_request();
    connection.write(kChunkedHead + chunk("one\n") + chunk("two\n") + "0\r\n\r\n");
  });
  auto transport = make_cpprest_transport(plain(server.port()));
  auto sink = std::make_shared<Collector>(false);
  auto opened = transport->open(get_request(), kForever, sink);
  ASSERT_TRUE(opened) << opened.error().message;
  ASSERT_TRUE(sink->wait_for("one\n"));
  EXPECT_EQ(sink->text(), "one\n");
  opened->stream->resume();
  ASSERT_TRUE(sink->wait_for("one\ntwo\n"));
  opened->stream->resume();
  EXPECT_TRUE(sink->wait_for_end());
}

TEST(Open, AHeldBackStreamCanBeDestroyed) {
  std::promise<void> closed;
  RawServer server([&](RawConnection& connection, int) {
    connection.read_request();
    connection.write(kChunkedHead + chunk("one\n") + chunk("two\n"));
    connection.wait_for_close();
    closed.set_value();
  });
  auto transport = make_cpprest_transport(plain(server.port()));
  auto sink = std::make_shared<Collector>(false);
  auto opened = transport->open(get_request(), kForever, sink);
  ASSERT_TRUE(opened) << opened.error().message;
  ASSERT_TRUE(sink->wait_for("one\n"));
  opened->stream.reset();
  EXPECT_EQ(closed.get_future().wait_for(kForever), std::future_status::ready);
}

// Callbacks of a request that was given up may come after everything else has gone.
TEST(Open, TheTransportMayGoFirst) {
  std::promise<void> let_go;
  RawServer server([&, gone = let_go.get_future().share()](RawConnection& connection, int) {
    connection.read_request();
    gone.wait();
    connection.write(whole_answer(200, "{}"));
    connection.wait_for_close();
  });
  auto transport = make_cpprest_transport(plain(server.port()));
  EXPECT_FALSE(transport->send(get_request(), 50ms));
  transport.reset();
  let_go.set_value();
}

}  // namespace
}  // namespace coxswain
