#include "operator/serving/bind_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace coxswain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::optional<BindAddress> parsed(const std::string& text) {
  const auto address = parse_bind_address("--metrics-bind-address", text);
  if (!address) throw std::runtime_error(address.error().message);
  return *address;
}

TEST(BindAddress, HostAndPort) {
  EXPECT_EQ(parsed(":8080")->host, "");
  EXPECT_EQ(parsed(":8080")->port, 8080);
  EXPECT_EQ(parsed("127.0.0.1:1")->host, "127.0.0.1");
  EXPECT_EQ(parsed("localhost:0")->host, "localhost");
  EXPECT_EQ(parsed("localhost:0")->port, 0);
  EXPECT_EQ(parsed("[::1]:65535")->host, "::1");
  EXPECT_EQ(parsed("[::1]:65535")->port, 65535);
}

TEST(BindAddress, NoneAndZeroSwitchOff) {
  EXPECT_FALSE(parsed(""));
  EXPECT_FALSE(parsed("0"));
}

TEST(BindAddress, WhatIsNoAddressIsRefusedByFlagAndValue) {
  for (const char* bad : {"8080", ":", "host", ":65536", ":-1", ":80a", "::1:8080", "::1", "[::1]", "[:8080",
                          "http://x:80", "a b:80", ": 80", "[host]:80", "[]:80"}) {
    SCOPED_TRACE(bad);
    const auto address = parse_bind_address("--metrics-bind-address", bad);
    ASSERT_FALSE(address);
    EXPECT_EQ(address.error().code, contract::ExitCode::kBadInput);
    EXPECT_THAT(address.error().message,
                AllOf(HasSubstr("--metrics-bind-address"), HasSubstr(std::string("\"") + bad + "\""),
                      HasSubstr(":PORT")));
  }
}

}  // namespace
}  // namespace coxswain
