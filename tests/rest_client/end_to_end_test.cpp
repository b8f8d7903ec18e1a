// The whole client, from kubeconfig to events, against a server over TLS.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <fstream>

#include "operator/client/rest/base64.h"
#include "operator/client/rest/kubeconfig.h"
#include "operator/client/rest/rest_api_client.h"
#include "tests/rest_client/test_server.h"

namespace coxswain {
namespace {

using namespace std::chrono_literals;
using resources::kPods;
using ::testing::HasSubstr;
using ::testing::Not;

const EnvironmentLookup kNoVariables = [](const std::string&) { return std::nullopt; };

class EndToEnd : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "end-to-end-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::trunc) << text;
    return folder_ / name;
  }
  std::filesystem::path kubeconfig(int port, const std::string& user) {
    return write("config",
                 "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
                 "clusters: [{name: k, cluster: {server: 'https://127.0.0.1:" +
                     std::to_string(port) + "', certificate-authority-data: " +
                     encode_base64(authority_.ca_pem()) + "}}]\nusers: [{name: u, user: " + user + "}]\n");
  }
  std::unique_ptr<RestApiClient> connect(int port, const std::string& user) {
    auto access = load_kubeconfig({kubeconfig(port, user)}, true).and_then([](const Kubeconfig& config) {
      return select_context(config, "");
    });
    EXPECT_TRUE(access) << access.error().message;
    auto client = RestApiClient::connect(*access, {}, kNoVariables);
    EXPECT_TRUE(client) << client.error().message;
    return std::move(*client);
  }
  CertificatePair server_certificate() { return authority_.issue({"server", "IP:127.0.0.1"}); }

  TestAuthority authority_;
  std::filesystem::path folder_;
};

TEST_F(EndToEnd, AWatchDeliversAndSignalsOverTls) {
  HttpsServer server(server_certificate(), [](const httplib::Request& request, httplib::Response& response) {
    EXPECT_EQ(request.get_param_value("watch"), "true");
    response.set_chunked_content_provider("application/json", [](size_t, httplib::DataSink& sink) {
      for (int i = 0; i < 100; ++i) {
        const std::string event =
            R"({"type":"ADDED","object":{"metadata":{"name":"p)" + std::to_string(i) + "\"}}}\n";
        sink.write(event.data(), event.size());
      }
      sink.done();
      return true;
    });
  });
  const auto client = connect(server.port(), "{token: t}");
  std::atomic<int> ready{0};
  auto watch = client->watch(kPods, "", {.resource_version = "1", .on_ready = [&] { ++ready; }});
  ASSERT_TRUE(watch) << watch.error().message;
  int count = 0;
  while (!(*watch)->ended()) {
    const auto event = (*watch)->next(10s);
    if (!event) continue;
    EXPECT_EQ(event->object.at("metadata").at("name"), "p" + std::to_string(count));
    ++count;
  }
  EXPECT_EQ(count, 100);
  EXPECT_GT(ready, 0);
}

TEST_F(EndToEnd, ARotatedTokenIsPickedUpAfterA401) {
  const auto token = write("token", "old");
  std::atomic<int> refused{0};
  HttpsServer server(server_certificate(), [&](const httplib::Request& request, httplib::Response& response) {
    response.set_content("{}", "application/json");
    if (request.get_header_value("Authorization") == "Bearer new") return;
    ++refused;
    response.status = 401;
  });
  const auto client = connect(server.port(), "{tokenFile: token}");
  write("token", "new");
  const auto result = client->create(kPods, "ns", Json::object(), {});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(refused, 1);
}

TEST_F(EndToEnd, ManyThreadsShareOneClient) {
  HttpsServer server(server_certificate(), [&](const httplib::Request& request, httplib::Response& response) {
    response.set_content("{\"path\":\"" + request.path + "\"}", "application/json");
  });
  const auto client = connect(server.port(), "{token: t}");
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        const std::string name = "p-" + std::to_string(t) + "-" + std::to_string(i);
        const auto pod = client->get(kPods, "ns", name);
        if (pod && pod->at("path") == "/api/v1/namespaces/ns/pods/" + name) ++right;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, 60);
}

TEST_F(EndToEnd, WhatIsWrongWithTheFilesIsSaidAtTheStart) {
  const CertificatePair pair = authority_.issue({"a"});
  const CertificatePair other = authority_.issue({"b"});
  write("cert", pair.certificate_pem);
  write("other-key", other.key_pem);
  write("empty", "");
  const auto failure = [&](const std::string& user) {
    auto access = load_kubeconfig({kubeconfig(1, user)}, true).and_then([](const Kubeconfig& config) {
      return select_context(config, "");
    });
    auto client = RestApiClient::connect(*access, {}, kNoVariables);
    return client ? std::string("none") : client.error().message;
  };
  EXPECT_THAT(failure("{client-certificate: cert, client-key: missing}"), HasSubstr("client-key: "));
  EXPECT_THAT(failure("{client-certificate: cert, client-key: other-key}"),
              HasSubstr("does not belong to client-certificate"));
  EXPECT_THAT(failure("{client-certificate: cert, client-key: empty}"), HasSubstr("client-key"));
  EXPECT_THAT(failure("{tokenFile: missing}"), HasSubstr("missing"));
  EXPECT_THAT(failure("{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./missing}}"),
              HasSubstr("exec plugin"));
}

TEST_F(EndToEnd, NoErrorHoldsTheToken) {
  const TestAuthority other;
  HttpsServer server(other.issue({"server", "IP:127.0.0.1"}),
                     [](const httplib::Request&, httplib::Response&) {});
  const auto client = connect(server.port(), "{token: hunter2}");
  const auto result = client->get(kPods, "ns", "p");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().reason, "Untrusted");
  EXPECT_THAT(result.error().message, Not(HasSubstr("hunter2")));
}

}  // namespace
}  // namespace coxswain
