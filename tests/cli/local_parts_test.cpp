#include <gtest/gtest.h>

#include "cli/coxswain/manifest.h"
#include "cli/process_node/container_environment.h"
#include "cli/process_node/path_map.h"

namespace coxswain {
namespace {

TEST(PathMap, TheLongestMountWinsAndOnlyWholeNamesCount) {
  PathMap map;
  map.add("/data/", "/home/me/data");
  map.add("/data/fast", "/ssd");
  EXPECT_EQ(map.rewrite("/data"), "/home/me/data");
  EXPECT_EQ(map.rewrite("/data/a"), "/home/me/data/a");
  EXPECT_EQ(map.rewrite("/data/fast/b"), "/ssd/b");
  EXPECT_EQ(map.rewrite("/database"), "/database");
  EXPECT_EQ(map.rewrite("see /data"), "see /data");
  EXPECT_EQ(map.rewrite("--in=/data/a"), "--in=/home/me/data/a");
  EXPECT_EQ(map.rewrite_all({{"a", {"/data/x", 1}}}), Json({{"a", {"/home/me/data/x", 1}}}));
}

TEST(Expand, AsKubernetesDoes) {
  const Environment env = {{"A", "1"}};
  EXPECT_EQ(expand("x$(A)y", env), "x1y");
  EXPECT_EQ(expand("$(B)", env), "$(B)");
  EXPECT_EQ(expand("$$(A)", env), "$(A)");
  EXPECT_EQ(expand("$A $", env), "$A $");
}

TEST(ContainerEnvironment, SourcesOfAValue) {
  const Json pod = {
      {"metadata", {{"name", "p"}, {"namespace", "ns"}, {"uid", "u"}, {"labels", {{"l", "v"}}}}}};
  const Json from_name = {{"fieldRef", {{"fieldPath", "metadata.name"}}}};
  const Json from_label = {{"fieldRef", {{"fieldPath", "metadata.labels['l']"}}}};
  const Json from_ip = {{"fieldRef", {{"fieldPath", "status.podIP"}}}};
  const Json from_map = {{"configMapKeyRef", {{"name", "m"}, {"key", "k"}}}};
  const Json container = {{"name", "trainer"},
                          {"envFrom", {{{"prefix", "P_"}, {"configMapRef", {{"name", "m"}}}}}},
                          {"env",
                           {{{"name", "NAME"}, {"valueFrom", from_name}},
                            {{"name", "LABEL"}, {"valueFrom", from_label}},
                            {{"name", "IP"}, {"valueFrom", from_ip}},
                            {{"name", "KEY"}, {"valueFrom", from_map}},
                            {{"name", "MASTER_ADDR"}, {"value", "j-0.j.ns.svc"}},
                            {{"name", "URL"}, {"value", "$(MASTER_ADDR):$(KEY)"}}}}};
  const ConfigMapLookup maps = [](const std::string& name) -> Json {
    if (name != "m") return nullptr;
    return {{"data", {{"k", "value"}}}};
  };
  const auto env =
      container_environment(pod, container, {{"HOME", "/h"}}, {{"MASTER_ADDR", "127.0.0.1"}}, {}, maps);
  ASSERT_TRUE(env) << env.error().message;
  EXPECT_EQ(*env, (Environment{{"HOME", "/h"},
                               {"P_k", "value"},
                               {"NAME", "p"},
                               {"LABEL", "v"},
                               {"IP", "127.0.0.1"},
                               {"KEY", "value"},
                               {"MASTER_ADDR", "127.0.0.1"},
                               {"URL", "127.0.0.1:value"}}));
  const Json secret = {
      {"name", "trainer"},
      {"env", {{{"name", "TOKEN"}, {"valueFrom", {{"secretKeyRef", {{"name", "s"}, {"key", "k"}}}}}}}}};
  EXPECT_FALSE(container_environment(pod, secret, {}, {}, {}, maps));
  EXPECT_EQ(container_environment(pod, secret, {{"TOKEN", "t"}}, {}, {}, maps)->at("TOKEN"), "t");
}

TEST(Manifest, SettingsReachAnyField) {
  Json job = {{"spec", {{"nodes", 1}, {"env", {{{"name", "A"}, {"value", "1"}}}}}}};
  for (const char* setting : {"nodes=3", "config.params.lr=1e-4", "spec.suspend=true", "metadata.name=x",
                              "env.0.value=\"2\"", "resources.limits.\"nvidia.com/gpu\"=1"}) {
    const auto applied = apply_setting(job, setting);
    ASSERT_TRUE(applied) << applied.error().message;
  }
  EXPECT_EQ(job["spec"]["nodes"], 3);
  EXPECT_EQ(job["spec"]["config"]["params"]["lr"], 1e-4);
  EXPECT_EQ(job["spec"]["suspend"], true);
  EXPECT_EQ(job["metadata"]["name"], "x");
  EXPECT_EQ(job["spec"]["env"][0]["value"], "2");
  EXPECT_EQ(job["spec"]["resources"]["limits"]["nvidia.com/gpu"], 1);
  for (const char* bad : {"nodes", "=1", "a..b=1", "env.7.value=1", "nodes.deep=1"}) {
    EXPECT_FALSE(apply_setting(job, bad)) << bad;
  }
}

TEST(Manifest, RelativePathsAreAnchoredHere) {
  Json job = {{"spec",
               {{"config",
                 {{"base_model", "models/a"},
                  {"data", {{"path", "/data/x"}}},
                  {"params", {{"resume_from_checkpoint", "auto"}}}}}}}};
  anchor_paths(job, "/home/me");
  EXPECT_EQ(job["spec"]["config"]["base_model"], "/home/me/models/a");
  EXPECT_EQ(job["spec"]["config"]["data"]["path"], "/data/x");
  EXPECT_EQ(job["spec"]["config"]["params"]["resume_from_checkpoint"], "auto");
}

}  // namespace
}  // namespace coxswain
