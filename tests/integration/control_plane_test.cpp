// The rig itself.
#include <gmock/gmock.h>

#include "tests/integration/fixture.h"

namespace coxswain::testing {
namespace {

using coxswain::resources::kConfigMaps;

Json a_map(const std::string& name) {
  return {{"metadata", {{"name", name}}}, {"data", {{"key", "value"}}}};
}

class Rig : public ControlPlaneTest {};

TEST_F(Rig, TheStoreOutlivesItsServers) {
  if (!plane().owned()) GTEST_SKIP() << "this cluster is not ours to kill";
  ASSERT_TRUE(api().create(kConfigMaps, ns(), a_map("before"), {}));
  plane().kill_api_server();
  EXPECT_FALSE(plane().ready());
  plane().kill_etcd();
  plane().start_etcd();
  plane().start_api_server();
  EXPECT_TRUE(api().get(kConfigMaps, ns(), "before"));
  EXPECT_TRUE(api().create(kConfigMaps, ns(), a_map("after"), {}));
}

TEST_F(Rig, ATokenIsItsServiceAccountAndMayNothing) {
  const std::string token = plane().service_account_token(ns(), "default");
  const auto access = find_cluster_access({.kubeconfig = plane().kubeconfig_for_token(token), .context = ""},
                                          process_environment());
  ASSERT_TRUE(access);
  auto client = RestApiClient::connect(*access, ControlPlane::unlimited(), process_environment());
  ASSERT_TRUE(client);
  const auto read = (*client)->get(kConfigMaps, ns(), "c");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, 403);
  EXPECT_THAT(read.error().message, ::testing::HasSubstr("system:serviceaccount:" + ns() + ":default"));
}

TEST_F(Rig, KubectlSpeaksToIt) {
  const Finished version = plane().kubectl({"version", "--output=json"});
  ASSERT_EQ(version.exit_code, 0) << version.err;
  EXPECT_TRUE(Json::parse(version.out).contains("serverVersion"));
}

}  // namespace
}  // namespace coxswain::testing
