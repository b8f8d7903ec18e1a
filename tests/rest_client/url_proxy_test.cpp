#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "operator/client/rest/base64.h"
#include "operator/client/rest/proxy.h"
#include "operator/client/rest/url.h"

namespace coxswain {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Url, Parses) {
  const auto url = parse_url("https://user:p%40ss@api.example.com:6443/k8s/clusters/a/", "server");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->scheme, "https");
  EXPECT_EQ(url->user, "user");
  EXPECT_EQ(url->password, "p@ss");
  EXPECT_EQ(url->authority(), "api.example.com:6443");
  EXPECT_EQ(url->path, "/k8s/clusters/a");
  EXPECT_EQ(parse_url("HTTPS://h", "s")->port, 443);
  EXPECT_EQ(parse_url("http://h/", "s")->port, 80);
  EXPECT_EQ(parse_url("http://h/", "s")->path, "");
}

TEST(Url, Ipv6AddressesStandInBrackets) {
  const auto url = parse_url("https://[fd00::1]:6443", "server");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->host, "fd00::1");
  EXPECT_EQ(url->authority(), "[fd00::1]:6443");
  EXPECT_EQ(parse_url("https://[::1]", "s")->port, 443);
}

TEST(Url, WhatIsNoneIsRefusedWithItsField) {
  for (const std::string text :
       {"", "h:6443", "ftp://h", "https://", "https://:1", "https://h:", "https://h:0", "https://h:65536",
        "https://h:x", "https://fd00::1:6443", "https://[fd00::1", "https://[fd00::1]x", "https://[h]:1",
        "https://h?a", "https://h#a", "https://h h", "https://h_\n:1"}) {
    const auto url = parse_url(text, "clusters[a].server");
    ASSERT_FALSE(url) << text;
    EXPECT_THAT(url.error().message, ::testing::StartsWith("clusters[a].server: ")) << text;
  }
  EXPECT_THAT(parse_url("https://u:secret@h:x", "s").error().message, Not(HasSubstr("secret")));
}

TEST(Url, EscapesAndBack) {
  EXPECT_EQ(percent_encode("a-z_.~/ é="), "a-z_.~%2F%20%C3%A9%3D");
  EXPECT_EQ(percent_decode("a%2Fb%"), "a/b%");
  EXPECT_EQ(percent_decode("%zz%4"), "%zz%4");
}

TEST(Base64, ThereAndBack) {
  for (const std::string text : {"", "a", "ab", "abc", "abcd"}) {
    EXPECT_EQ(decode_base64(encode_base64(text)), text);
  }
  EXPECT_EQ(decode_base64("YWJj\n ZA=="), "abcd");
  for (const std::string text : {"YWJ", "YW=j", "====", "YWJ*", "Y==="}) {
    EXPECT_EQ(decode_base64(text), std::nullopt) << text;
  }
}

struct NoProxyCase {
  std::string no_proxy;
  std::string host;
  int port;
  bool bypassed;
};

TEST(Proxy, NoProxyRules) {
  const std::vector<NoProxyCase> cases{
      {"", "api.example.com", 443, false},
      {"", "localhost", 443, true},
      {"", "127.8.0.1", 443, true},
      {"", "::1", 443, true},
      {"*", "api.example.com", 443, true},
      {"example.com", "example.com", 443, true},
      {"example.com", "api.EXAMPLE.com", 443, true},
      {"example.com", "badexample.com", 443, false},
      {".example.com", "example.com", 443, false},
      {".example.com", "api.example.com", 443, true},
      {"*.example.com", "api.example.com", 443, true},
      {"a.com, example.com ,b.com", "example.com", 443, true},
      {"example.com:6443", "example.com", 6443, true},
      {"example.com:6443", "example.com", 443, false},
      {"10.0.0.1", "10.0.0.1", 443, true},
      {"10.0.0.1", "10.0.0.2", 443, false},
      {"10.0.0.1:6443", "10.0.0.1", 6443, true},
      {"10.0.0.1:6443", "10.0.0.1", 443, false},
      {"10.96.0.0/12", "10.96.0.1", 443, true},
      {"10.96.0.0/12", "10.112.0.1", 443, false},
      {"10.96.0.0/33", "10.96.0.1", 443, false},
      {"10.96.0.0/x", "10.96.0.1", 443, false},
      {"0.0.0.0/0", "10.96.0.1", 443, true},
      {"fd00::/8", "fd12::1", 443, true},
      {"fd00::1", "fd00:0::1", 443, true},
      {"[fd00::1]:6443", "fd00::1", 6443, true},
      {"fd00::/8", "10.0.0.1", 443, false},
      {",,", "example.com", 443, false},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(bypasses_proxy(c.no_proxy, c.host, c.port), c.bypassed) << c.no_proxy << " " << c.host;
  }
}

EnvironmentLookup variables(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
    const auto it = values.find(name);
    return it == values.end() ? std::nullopt : std::optional(it->second);
  };
}

TEST(Proxy, TheEnvironmentCounts) {
  const Url server{"https", "", "", "api.example.com", 6443, ""};
  const auto proxy = [&](std::map<std::string, std::string> values) {
    auto chosen = proxy_for(server, "", variables(std::move(values)));
    return chosen && *chosen ? (*chosen)->authority() : std::string("none");
  };
  EXPECT_EQ(proxy({}), "none");
  EXPECT_EQ(proxy({{"HTTPS_PROXY", "http://p:3128"}}), "p:3128");
  EXPECT_EQ(proxy({{"https_proxy", "p:3128"}}), "p:3128");
  EXPECT_EQ(proxy({{"HTTPS_PROXY", "http://a:1"}, {"https_proxy", "http://b:1"}}), "a:1");
  EXPECT_EQ(proxy({{"HTTP_PROXY", "http://p:3128"}}), "none");
  EXPECT_EQ(proxy({{"HTTPS_PROXY", "http://p:3128"}, {"no_proxy", "example.com"}}), "none");
}

TEST(Proxy, TheClustersOwnWins) {
  const Url server{"https", "", "", "localhost", 6443, ""};
  const auto proxy =
      proxy_for(server, "http://own:1", variables({{"HTTPS_PROXY", "http://p:1"}, {"NO_PROXY", "*"}}));
  ASSERT_TRUE(proxy && *proxy);
  EXPECT_EQ((*proxy)->authority(), "own:1");
}

TEST(Proxy, OtherKindsAreRefused) {
  const Url server{"https", "", "", "api.example.com", 6443, ""};
  for (const std::string url : {"https://p:1", "socks5://p:1"}) {
    const auto proxy = proxy_for(server, url, variables({}));
    ASSERT_FALSE(proxy) << url;
    EXPECT_THAT(proxy.error().message, HasSubstr("proxy-url"));
  }
}

}  // namespace
}  // namespace coxswain
