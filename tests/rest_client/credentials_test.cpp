#include "operator/client/rest/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace coxswain {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

class CredentialsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "credentials-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    access_.source = "/f, context c";
    access_.server = {"https", "", "", "h", 443, ""};
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::trunc) << text;
    return folder_ / name;
  }
  Clock clock() {
    return [this] { return now_; };
  }
  Credentials::ExecRunner plugin() {
    return [this](const ExecPlugin&, const std::string&) {
      ++runs_;
      return output_;
    };
  }
  void use_plugin() {
    access_.exec = ExecPlugin{"client.authentication.k8s.io/v1", "login", {}, {}, "", false};
  }
  static std::string credential(const std::string& status) {
    return R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":)" + status +
           "}";
  }
  static std::string authorization(Credentials& credentials) {
    const auto headers = credentials.headers();
    if (!headers) return headers.error().message;
    return headers->empty() ? "" : headers->front().second;
  }

  std::filesystem::path folder_;
  ClusterAccess access_;
  TimePoint now_{1000h};
  int runs_ = 0;
  Result<std::string> output_ = std::string();
};

TEST_F(CredentialsTest, NothingIsSentWhereNothingIsGiven) {
  EXPECT_THAT(*Credentials(access_, clock()).headers(), ::testing::IsEmpty());
}

TEST_F(CredentialsTest, StaticOnes) {
  access_.token = "t";
  access_.impersonate = {"admin", "7", {"g"}};
  EXPECT_THAT(*Credentials(access_, clock()).headers(),
              ElementsAre(Pair("Authorization", "Bearer t"), Pair("Impersonate-User", "admin"),
                          Pair("Impersonate-Uid", "7"), Pair("Impersonate-Group", "g")));
  access_ = {};
  access_.username = "u";
  access_.password = "p";
  EXPECT_THAT(*Credentials(access_, clock()).headers(), ElementsAre(Pair("Authorization", "Basic dTpw")));
}

TEST_F(CredentialsTest, ATokenFileIsReadAgainAMinuteLater) {
  access_.token = "static";
  access_.token_file = write("token", "one\n");
  Credentials credentials(access_, clock());
  EXPECT_EQ(authorization(credentials), "Bearer one");
  write("token", "two");
  now_ += 59s;
  EXPECT_EQ(authorization(credentials), "Bearer one");
  now_ += 1s;
  EXPECT_EQ(authorization(credentials), "Bearer two");
}

TEST_F(CredentialsTest, ATokenFileThatVanishesLeavesItsTokenInUse) {
  access_.token_file = write("token", "one");
  Credentials credentials(access_, clock());
  EXPECT_EQ(authorization(credentials), "Bearer one");
  for (const std::string text : {"", "  \n"}) {
    write("token", text);
    now_ += 61s;
    EXPECT_EQ(authorization(credentials), "Bearer one");
  }
  std::filesystem::remove(access_.token_file);
  now_ += 61s;
  EXPECT_EQ(authorization(credentials), "Bearer one");
}

TEST_F(CredentialsTest, ATokenFileThatNeverWasIsSaid) {
  access_.token_file = "/nowhere/token";
  EXPECT_THAT(Credentials(access_, clock()).headers().error().message,
              HasSubstr("/f, context c: the token file /nowhere/token"));
}

TEST_F(CredentialsTest, A401ReadsTheTokenFileAtOnce) {
  access_.token_file = write("token", "one");
  Credentials credentials(access_, clock());
  const auto used = *credentials.headers();
  EXPECT_FALSE(credentials.refresh(used).again);
  write("token", "two");
  EXPECT_TRUE(credentials.refresh(used).again);
  EXPECT_EQ(authorization(credentials), "Bearer two");
}

TEST_F(CredentialsTest, APluginRunsAgainOnceItsCredentialHasExpired) {
  use_plugin();
  output_ =
      credential(R"({"token":"one","expirationTimestamp":")" + std::string("1970-02-11T16:10:00Z") + R"("})");
  Credentials credentials(access_, clock(), plugin());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(authorization(credentials), "Bearer one");
  EXPECT_EQ(runs_, 1);
  output_ = credential(R"({"token":"two"})");
  now_ += 10min - 1s;
  EXPECT_EQ(authorization(credentials), "Bearer one");
  now_ += 1s;
  EXPECT_EQ(authorization(credentials), "Bearer two");
  now_ += 1000h;  // without an expiry it is good until a 401
  EXPECT_EQ(authorization(credentials), "Bearer two");
  EXPECT_EQ(runs_, 2);
}

TEST_F(CredentialsTest, A401RunsThePluginAgainButNotInAHotLoop) {
  use_plugin();
  output_ = credential(R"({"token":"one"})");
  Credentials credentials(access_, clock(), plugin());
  const auto used = *credentials.headers();
  now_ += 11s;
  output_ = credential(R"({"token":"two"})");
  EXPECT_TRUE(credentials.refresh(used).again);
  EXPECT_EQ(runs_, 2);
  // Another thread's request had the old one: the new one is there already.
  EXPECT_TRUE(credentials.refresh(used).again);
  EXPECT_FALSE(credentials.refresh(*credentials.headers()).again);
  EXPECT_EQ(runs_, 2);
}

TEST_F(CredentialsTest, APluginsClientCertificateIsShownAndItsChangeTold) {
  use_plugin();
  output_ = credential(R"({"clientCertificateData":"c1","clientKeyData":"k1"})");
  Credentials credentials(access_, clock(), plugin());
  EXPECT_EQ(credentials.tls_material()->certificate_pem, "c1");
  now_ += 11s;
  output_ = credential(R"({"clientCertificateData":"c2","clientKeyData":"k2"})");
  const auto refreshed = credentials.refresh({});
  EXPECT_TRUE(refreshed.again);
  EXPECT_TRUE(refreshed.certificate);
  EXPECT_EQ(credentials.tls_material()->key_pem, "k2");
}

TEST_F(CredentialsTest, CertificateFilesAreReadEachTime) {
  access_.ca.file = write("ca", "ca1");
  access_.client_certificate.file = write("cert", "c1");
  access_.client_key.data = "key";
  Credentials credentials(access_, clock());
  EXPECT_EQ(credentials.tls_material()->certificate_pem, "c1");
  write("cert", "c2");
  write("ca", "ca2");
  EXPECT_EQ(credentials.tls_material()->certificate_pem, "c2");
  EXPECT_EQ(credentials.tls_material()->ca_pem, "ca2");
  // An empty CA must never mean the system's.
  write("ca", "");
  EXPECT_FALSE(credentials.tls_material());
}

// --- Plugins
const ExecPlugin kPlugin{"client.authentication.k8s.io/v1", "/bin/sh", {}, {}, "Install it from X.", false};

ExecPlugin shell(const std::string& script) {
  ExecPlugin plugin = kPlugin;
  plugin.args = {"-c", script};
  return plugin;
}

TEST(ExecPlugin, BadOutputsAreSaidWithoutQuotingThem) {
  const auto output = [](const std::string& version, const std::string& status) {
    return R"({"kind":"ExecCredential","apiVersion":")" + version + R"(","status":)" + status + "}";
  };
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "printed no ExecCredential"},
      {"secret", "printed no ExecCredential"},
      {"[]", "printed no ExecCredential"},
      {output("client.authentication.k8s.io/v1beta1", R"({"token":"secret"})"), "of another apiVersion"},
      {output(kPlugin.api_version, "{}"), "neither a token nor a client certificate"},
      {output(kPlugin.api_version, "null"), "neither a token nor a client certificate"},
      {output(kPlugin.api_version, R"({"clientKeyData":"secret"})"), "only one of"},
      {output(kPlugin.api_version, R"({"token":"secret","expirationTimestamp":"secret"})"),
       "that is no time"},
  };
  for (const auto& [text, sentence] : cases) {
    const auto credential = parse_exec_credential(text, kPlugin);
    ASSERT_FALSE(credential) << text;
    EXPECT_THAT(credential.error().message, HasSubstr(sentence));
    EXPECT_THAT(credential.error().message, HasSubstr("Install it from X."));
    EXPECT_THAT(credential.error().message, Not(HasSubstr("secret")));
  }
}

TEST(ExecPlugin, IsToldOfTheClusterIfItAsks) {
  ClusterAccess access;
  access.server = {"https", "", "", "fd00::1", 6443, "/a"};
  ExecPlugin plugin = kPlugin;
  EXPECT_THAT(exec_info(plugin, access), Not(HasSubstr("fd00")));
  plugin.provide_cluster_info = true;
  EXPECT_THAT(exec_info(plugin, access), HasSubstr(R"("server":"https://[fd00::1]:6443/a")"));
  EXPECT_THAT(exec_info(plugin, access), HasSubstr(R"("interactive":false)"));
}

TEST(ExecPlugin, RunsWithItsEnvironmentAndNoInput) {
  ExecPlugin plugin = shell("cat; printf '%s %s' \"$X\" \"$KUBERNETES_EXEC_INFO\"");
  plugin.env = {{"X", "a b"}};
  const auto output = run_exec_plugin(plugin, "{info}", 30s);
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_EQ(*output, "a b {info}");
}

TEST(ExecPlugin, ArgumentsAreNotReadByAShell) {
  ExecPlugin plugin = kPlugin;
  plugin.command = "echo";
  plugin.args = {"$HOME", "; exit 3", "*"};
  const auto output = run_exec_plugin(plugin, "", 30s);
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_EQ(*output, "$HOME ; exit 3 *\n");
}

TEST(ExecPlugin, FailuresAreSaid) {
  EXPECT_THAT(run_exec_plugin(shell("exit 3"), "", 30s).error().message,
              HasSubstr("failed with exit code 3"));
  EXPECT_THAT(run_exec_plugin(shell("kill -9 $$"), "", 30s).error().message, HasSubstr("ended by signal 9"));
  EXPECT_THAT(run_exec_plugin(shell("sleep 100 & sleep 100"), "", 100ms).error().message,
              HasSubstr("was not done after 100 ms"));
  EXPECT_THAT(run_exec_plugin(shell("yes"), "", 30s).error().message, HasSubstr("more than 1 MiB"));
  ExecPlugin missing = kPlugin;
  missing.command = "no-such-plugin-anywhere";
  EXPECT_THAT(run_exec_plugin(missing, "", 30s).error().message, HasSubstr("can't be started"));
}

}  // namespace
}  // namespace coxswain
