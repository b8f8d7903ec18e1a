#include "operator/client/rest/kubeconfig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <random>

namespace coxswain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kFile[] = R"(apiVersion: v1
kind: Config
current-context: dev
clusters:
- name: dev-cluster
  cluster:
    server: https://10.0.0.1:6443
    certificate-authority: pki/ca.crt
    tls-server-name: kubernetes
- name: plain
  cluster: {server: "http://127.0.0.1:8001"}
users:
- name: dev-user
  user:
    client-certificate-data: Y2VydA==
    client-key: /keys/dev.key
- name: with-token
  user: {token: t0, tokenFile: token}
contexts:
- name: dev
  context: {cluster: dev-cluster, user: dev-user, namespace: team}
- name: other
  context: {cluster: plain, user: with-token}
)";

Kubeconfig parsed(const std::string& text, const std::string& file = "/home/me/.kube/config") {
  auto config = parse_kubeconfig(text, file);
  EXPECT_TRUE(config) << config.error().message;
  return config ? *config : Kubeconfig{};
}

TEST(Kubeconfig, TheCurrentContextIsRead) {
  const auto access = select_context(parsed(kFile), "");
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->source, "/home/me/.kube/config, context dev");
  EXPECT_EQ(access->server.authority(), "10.0.0.1:6443");
  EXPECT_EQ(access->default_namespace, "team");
  EXPECT_EQ(access->tls_server_name, "kubernetes");
  EXPECT_FALSE(access->skip_verify);
  EXPECT_EQ(access->client_certificate.data, "cert");
  EXPECT_EQ(access->client_key.file, "/keys/dev.key");
}

TEST(Kubeconfig, RelativePathsAreNeighboursOfTheFile) {
  EXPECT_EQ(select_context(parsed(kFile), "")->ca.file, "/home/me/.kube/pki/ca.crt");
  EXPECT_EQ(select_context(parsed(kFile), "other")->token_file, "/home/me/.kube/token");
}

TEST(Kubeconfig, AnotherContextCanBeChosen) {
  const auto access = select_context(parsed(kFile), "other");
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_FALSE(access->server.tls());
  EXPECT_EQ(access->token, "t0");
  EXPECT_EQ(access->default_namespace, "default");
}

TEST(Kubeconfig, JsonIsReadToo) {
  const auto access = select_context(
      parsed(R"({"current-context":"c","clusters":[{"name":"k","cluster":{"server":"https://h"}}],)"
             R"("contexts":[{"name":"c","context":{"cluster":"k"}}]})"),
      "");
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->server.authority(), "h:443");
}

std::string with_cluster(const std::string& cluster, const std::string& user = "{}") {
  return "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
         "clusters: [{name: k, cluster: " +
         cluster + "}]\nusers: [{name: u, user: " + user + "}]\n";
}

TEST(Kubeconfig, ExecPlugins) {
  const auto access = select_context(
      parsed(with_cluster(
          "{server: 'https://h'}",
          "{exec: {apiVersion: client.authentication.k8s.io/v1, command: bin/login, args: [a, b c], "
          "env: [{name: X, value: '1'}], installHint: get it, provideClusterInfo: true, "
          "interactiveMode: Never}}")),
      "");
  ASSERT_TRUE(access) << access.error().message;
  ASSERT_TRUE(access->exec);
  EXPECT_EQ(access->exec->command, "/home/me/.kube/bin/login");
  EXPECT_THAT(access->exec->args, ElementsAre("a", "b c"));
  EXPECT_THAT(access->exec->env, ElementsAre(std::pair<std::string, std::string>("X", "1")));
  EXPECT_TRUE(access->exec->provide_cluster_info);
  const auto bare = select_context(
      parsed(with_cluster("{server: 'https://h'}",
                          "{exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: aws}}")),
      "");
  ASSERT_TRUE(bare) << bare.error().message;
  EXPECT_EQ(bare->exec->command, "aws");
}

TEST(Kubeconfig, ClusterOptions) {
  const auto access = select_context(
      parsed(with_cluster("{server: 'https://h', insecure-skip-tls-verify: true, proxy-url: 'http://p:1', "
                          "disable-compression: true}",
                          "{username: u, password: p, as: admin, as-uid: '7', as-groups: [g]}")),
      "");
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_TRUE(access->skip_verify);
  EXPECT_EQ(access->proxy_url, "http://p:1");
  EXPECT_FALSE(access->compression);
  EXPECT_EQ(access->impersonate.user, "admin");
  EXPECT_THAT(access->impersonate.groups, ElementsAre("g"));
}

TEST(Kubeconfig, TheFirstFileWinsAndEntriesAreNotMixed) {
  Kubeconfig config = parsed(with_cluster("{server: 'https://first', proxy-url: 'http://p:1'}"), "/a/config");
  merge_kubeconfig(config, parsed(kFile, "/b/config"));
  merge_kubeconfig(config,
                   parsed(with_cluster("{server: 'https://third', tls-server-name: t}"), "/c/config"));
  const auto current = select_context(config, "");
  ASSERT_TRUE(current) << current.error().message;
  EXPECT_EQ(current->server.host, "first");
  EXPECT_EQ(current->tls_server_name, "");
  // Each entry's paths are beside the file that it came from.
  EXPECT_EQ(select_context(config, "dev")->ca.file, "/b/pki/ca.crt");
}

struct BadCase {
  std::string text;
  std::string sentence;  // a part of it
};

TEST(Kubeconfig, ErrorsNameFileContextAndField) {
  const std::vector<BadCase> cases{
      {"a: [", "/f: is no YAML at line"},
      {"[]", "/f: must be a mapping"},
      {"clusters: {}", "/f.clusters: must be a list"},
      {"clusters: [3]", "/f.clusters: must hold entries with a name"},
      {"current-context: [a]", "/f.current-context: must be a text"},
      {"contexts: []", "/f: current-context is not set"},
      {"current-context: x\ncontexts: [{name: a}, {name: b}]", "there is no context \"x\"; there are: a, b"},
      {"current-context: c\ncontexts: [{name: c, context: {cluster: k}}]",
       "/f, context c: contexts[c].cluster: there is no cluster \"k\"; there are: none"},
      {"current-context: c\ncontexts: [{name: c, context: {cluster: k, user: v}}]\nclusters: [{name: k}]",
       "/f, context c: contexts[c].user: there is no user \"v\""},
      {with_cluster("{}"), "/f, context c: clusters[k].server: is missing"},
      {with_cluster("{server: 'h:1'}"), "/f, context c: clusters[k].server: \"h:1\" has no https://"},
      {with_cluster("{server: 'https://h', certificate-authority-data: '*'}"),
       "clusters[k].certificate-authority-data: must be PEM text in Base64"},
      {with_cluster("{server: 'https://h', certificate-authority: a, insecure-skip-tls-verify: true}"),
       "clusters[k].insecure-skip-tls-verify: can't be set together with certificate-authority"},
      {with_cluster("{server: 'https://h', insecure-skip-tls-verify: maybe}"),
       "clusters[k].insecure-skip-tls-verify: must be true or false"},
      {with_cluster("{server: 'https://h'}", "{client-certificate: a}"), "users[u].client-key: is missing"},
      {with_cluster("{server: 'https://h'}", "{auth-provider: {name: gcp}}"),
       "users[u].auth-provider: is not supported"},
      {with_cluster("{server: 'https://h'}", "{as-groups: [g]}"), "users[u].as: is missing"},
      {with_cluster("{server: 'https://h'}", "{as: a, as-groups: [g, h]}"),
       "users[u].as-groups: may hold only one"},
      {with_cluster("{server: 'https://h'}", "{exec: {command: a}}"),
       "users[u].exec.apiVersion: must be client.auth"},
      {with_cluster("{server: 'https://h'}", "{exec: {apiVersion: client.authentication.k8s.io/v1}}"),
       "users[u].exec.command: is missing"},
      {with_cluster(
           "{server: 'https://h'}",
           "{exec: {apiVersion: client.authentication.k8s.io/v1, command: a, interactiveMode: Always}}"),
       "users[u].exec.interactiveMode: is Always"},
      {with_cluster("{server: 'https://h'}", "3"), "/f, context c: users[u]: must be a mapping"},
  };
  for (const auto& c : cases) {
    const auto access = parse_kubeconfig(c.text, "/f").and_then([](const Kubeconfig& config) {
      return select_context(config, "");
    });
    ASSERT_FALSE(access) << c.text;
    EXPECT_THAT(access.error().message, HasSubstr(c.sentence));
  }
}

TEST(Kubeconfig, ErrorsHoldNoSecret) {
  const auto access = select_context(
      parsed(with_cluster("{server: 'https://u:hunter2@h:x'}", "{token: hunter2, password: hunter2}"), "/f"),
      "");
  ASSERT_FALSE(access);
  EXPECT_THAT(access.error().message, Not(HasSubstr("hunter2")));
}

TEST(Kubeconfig, NoTextIsTooStrange) {
  std::mt19937 random(3);
  const std::string seed = kFile;
  for (int round = 0; round < 3000; ++round) {
    std::string text = seed;
    for (int change = 0; change < 4; ++change) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, random() % 20);
          break;
        case 2:
          text.insert(at, std::string(1 + random() % 3, "[]{}:&*!-\n\t\"'"[random() % 13]));
          break;
        default:
          text.insert(at, seed.substr(random() % seed.size(), random() % 40));
      }
      if (text.empty()) text = "a";
    }
    const auto config = parse_kubeconfig(text, "/f");
    if (!config) continue;
    for (const std::string context : {"", "dev", "other"}) {
      const auto access = select_context(*config, context);
      EXPECT_TRUE(access || access.error().message.find("/f") != std::string::npos);
    }
  }
}

class KubeconfigFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "kubeconfig-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  EnvironmentLookup variables(std::map<std::string, std::string> values) {
    return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
      const auto it = values.find(name);
      return it == values.end() ? std::nullopt : std::optional(it->second);
    };
  }
  std::filesystem::path folder_;
};

TEST_F(KubeconfigFiles, KubeconfigNamesSeveralAndMissingOnesArePassedOver) {
  const auto a = write("a", with_cluster("{server: 'https://first'}"));
  const auto b = write("b", kFile);
  const std::string list = "/nowhere:" + a.string() + "::" + b.string();
  const auto access = find_cluster_access({}, variables({{"KUBECONFIG", list}}));
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->server.host, "first");
  EXPECT_TRUE(find_cluster_access({"", "dev"}, variables({{"KUBECONFIG", list}})));
  const auto none = find_cluster_access({}, variables({{"KUBECONFIG", "/nowhere"}}));
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("/nowhere"));
}

TEST_F(KubeconfigFiles, TheFlagComesFirstAndItsFileMustExist) {
  const auto a = write("a", with_cluster("{server: 'https://first'}"));
  const auto environment = variables({{"KUBECONFIG", write("b", kFile).string()}});
  EXPECT_EQ(find_cluster_access({a, ""}, environment)->server.host, "first");
  const auto missing = find_cluster_access({"/nowhere", ""}, environment);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("kubeconfig /nowhere can't be read"));
}

TEST_F(KubeconfigFiles, TheHomeFolderComesLast) {
  std::filesystem::create_directory(folder_ / ".kube");
  write(".kube/config", kFile);
  const auto access = find_cluster_access({}, variables({{"HOME", folder_.string()}}));
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->server.host, "10.0.0.1");
  EXPECT_FALSE(find_cluster_access({}, variables({{"HOME", "/nowhere"}})));
}

TEST_F(KubeconfigFiles, APodsServiceAccount) {
  write("token", "t\n");
  write("ca.crt", "ca");
  write("namespace", "coxswain-system");
  const auto access = in_cluster_access(
      variables({{"KUBERNETES_SERVICE_HOST", "fd00::1"}, {"KUBERNETES_SERVICE_PORT", "443"}}), folder_);
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->server.authority(), "[fd00::1]:443");
  EXPECT_EQ(access->token_file, folder_ / "token");
  EXPECT_EQ(access->ca.file, folder_ / "ca.crt");
  EXPECT_EQ(access->default_namespace, "coxswain-system");
}

TEST_F(KubeconfigFiles, AServiceAccountWithoutItsTokenIsSaid) {
  write("ca.crt", "ca");
  const auto access = in_cluster_access(
      variables({{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, {"KUBERNETES_SERVICE_PORT", "443"}}), folder_);
  ASSERT_FALSE(access);
  EXPECT_THAT(access.error().message, HasSubstr((folder_ / "token").string()));
  EXPECT_THAT(in_cluster_access(variables({}), folder_).error().message,
              HasSubstr("KUBERNETES_SERVICE_HOST"));
}

}  // namespace
}  // namespace coxswain
