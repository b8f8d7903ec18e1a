// Real sockets on loopback: the agent's own server, and servers that do what no agent does.
#include "operator/progress/http_progress_reader.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "runtime/serving/http_server.h"

namespace coxswain {
namespace {

Json pod_at(const std::string& ip) {
  return {{"status", {{"podIP", ip}}}};
}

// Hands one connection after another to `serve`.
class RawServer {
 public:
  explicit RawServer(std::function<void(int)> serve) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(listener_, reinterpret_cast<sockaddr*>(&address), size);
    ::listen(listener_, 16);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this, serve = std::move(serve)] {
      for (int fd = ::accept(listener_, nullptr, nullptr); fd >= 0;
           fd = ::accept(listener_, nullptr, nullptr)) {
        ++connections_;
        serve(fd);
        ::shutdown(fd, SHUT_RDWR);
        ::close(fd);
      }
    });
  }
  ~RawServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  int port() const { return port_; }
  int connections() const { return connections_; }

 private:
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int> connections_ = 0;
  std::jthread thread_;
};

bool say(int fd, const std::string& text) {
  return ::send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

std::string request_on(int fd) {
  std::string text;
  char byte = 0;
  while (text.find("\r\n\r\n") == std::string::npos && ::recv(fd, &byte, 1, 0) == 1) text += byte;
  return text;
}

std::optional<Json> answer_to(const std::string& text) {
  RawServer server([&](int fd) {
    request_on(fd);
    say(fd, text);
  });
  return HttpProgressReader({.port = server.port()}).read(pod_at("127.0.0.1"));
}

std::string with_length(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

TEST(HttpProgressReader, ReadsWhatTheAgentsServerSays) {
  const Json told = {{"job", "j"}, {"attempt", 2}, {"workers", Json::array()}};
  for (const char* ip : {"127.0.0.1", "::1"}) {
    HttpPages pages;
    pages["/progress"] = [&] { return HttpPage{200, "application/json", told.dump()}; };
    const auto server = HttpServer::start(std::move(pages), {.host = ip});
    if (!server && std::string(ip) == "::1") GTEST_SKIP() << "no IPv6 on this machine";
    ASSERT_TRUE(server) << server.error();
    HttpProgressReader reader({.port = (*server)->port()});
    EXPECT_EQ(reader.read(pod_at(ip)), told) << ip;
  }
}

TEST(HttpProgressReader, AsksForProgressAndNothingElse) {
  std::string request;
  {
    RawServer server([&](int fd) {
      request = request_on(fd);
      say(fd, with_length("{}"));
    });
    EXPECT_TRUE(HttpProgressReader({.port = server.port()}).read(pod_at("127.0.0.1")));
  }
  EXPECT_TRUE(request.starts_with("GET /progress HTTP/1.1\r\nHost: 127.0.0.1:")) << request;
}

TEST(HttpProgressReader, WhatIsNoJsonObjectIsNothing) {
  EXPECT_TRUE(answer_to(with_length("{\"a\":1}")));
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "{\"a\":";
  for (const std::string& body :
       {std::string("[]"), std::string("1"), std::string("{"), std::string("{\"a\":1e999}"),
        std::string("{\"a\":\"\xff\"}"), std::string(), std::string("{} x"), deep.substr(0, 200000),
        "{\"a\":" + std::string(100, '[') + std::string(100, ']') + "}"}) {
    EXPECT_FALSE(answer_to(with_length(body))) << body.substr(0, 60);
  }
}

TEST(HttpProgressReader, AnAnswerThatIsTooLargeIsNothing) {
  const std::string fits = "{\"a\":\"" + std::string(250 * 1024, 'a') + "\"}";
  EXPECT_TRUE(answer_to(with_length(fits)));
  const std::string large = "{\"a\":\"" + std::string(256 * 1024, 'a') + "\"}";
  EXPECT_FALSE(answer_to(with_length(large)));
  EXPECT_FALSE(answer_to("HTTP/1.1 200 OK\r\n\r\n" + large));
  std::string heads = "HTTP/1.1 200 OK\r\n";
  while (heads.size() < 300 * 1024) heads += "X: " + std::string(1000, 'a') + "\r\n";
  EXPECT_FALSE(answer_to(heads + "\r\n{}"));
}

TEST(HttpProgressReader, FollowsNoRedirect) {
  RawServer elsewhere([](int fd) { say(fd, with_length("{}")); });
  EXPECT_FALSE(answer_to("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:" +
                         std::to_string(elsewhere.port()) + "/progress\r\nContent-Length: 0\r\n\r\n"));
  EXPECT_EQ(elsewhere.connections(), 0);
}

TEST(HttpProgressReader, GoesThroughNoProxy) {
  RawServer proxy([](int fd) { say(fd, with_length("{}")); });
  const std::string url = "http://127.0.0.1:" + std::to_string(proxy.port());
  for (const char* name : {"HTTP_PROXY", "http_proxy", "ALL_PROXY"}) ::setenv(name, url.c_str(), 1);
  EXPECT_TRUE(answer_to(with_length("{\"a\":1}")));
  for (const char* name : {"HTTP_PROXY", "http_proxy", "ALL_PROXY"}) ::unsetenv(name);
  EXPECT_EQ(proxy.connections(), 0);
}

TEST(HttpProgressReader, APodWithoutAnAddressIsNotAsked) {
  HttpProgressReader reader;
  EXPECT_FALSE(reader.read(Json::object()));
  EXPECT_FALSE(reader.read(Json()));
  EXPECT_FALSE(reader.read({{"status", {{"podIP", 7}}}}));
  EXPECT_FALSE(reader.read({{"status", "odd"}}));
  EXPECT_FALSE(reader.read(pod_at("")));
  EXPECT_FALSE(reader.read(pod_at("localhost"))) << "only addresses";
}

TEST(HttpProgressReader, AConnectionThatIsRefusedIsNothing) {
  int port = 0;
  {
    RawServer gone([](int) {});
    port = gone.port();
  }
  EXPECT_FALSE(HttpProgressReader({.port = port}).read(pod_at("127.0.0.1")));
}

// Would last for ever if its time weren't for all of it.
TEST(HttpProgressReader, AServerThatDripsIsGivenUp) {
  std::atomic<bool> given_up = false;
  RawServer server([&](int fd) {
    say(fd, "HTTP/1.1 200 OK\r\n");
    while (say(fd, "X: y\r\n")) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    given_up = true;
  });
  HttpProgressReader reader({.port = server.port(), .limit = std::chrono::milliseconds(200)});
  EXPECT_FALSE(reader.read(pod_at("127.0.0.1")));
  while (!given_up) std::this_thread::yield();
}

TEST(HttpProgressReader, AServerThatIsSilentIsGivenUp) {
  RawServer server([](int fd) {
    char byte = 0;
    while (::recv(fd, &byte, 1, 0) == 1) {
    }
  });
  HttpProgressReader reader({.port = server.port(), .limit = std::chrono::milliseconds(100)});
  EXPECT_FALSE(reader.read(pod_at("127.0.0.1")));
}

TEST(HttpProgressReader, ManyThreadsAskAtOnce) {
  HttpPages pages;
  pages["/progress"] = [] { return HttpPage{200, "application/json", "{\"a\":1}"}; };
  const auto server = HttpServer::start(std::move(pages), {.host = "127.0.0.1"});
  ASSERT_TRUE(server);
  HttpProgressReader reader({.port = (*server)->port(), .limit = std::chrono::seconds(60)});
  std::atomic<int> good = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        for (int j = 0; j < 10; ++j) good += reader.read(pod_at("127.0.0.1")).has_value();
      });
    }
  }
  EXPECT_EQ(good, 80);
}

}  // namespace
}  // namespace coxswain
