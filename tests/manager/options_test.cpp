#include "operator/manager/options.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <regex>

namespace coxswain {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Set for one test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

std::variant<OperatorOptions, Goodbye> parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "coxswain-operator");
  return parse_operator_options(static_cast<int>(arguments.size()), arguments.data());
}

OperatorOptions parsed(std::vector<const char*> arguments) {
  auto result = parse(std::move(arguments));
  if (const auto* goodbye = std::get_if<Goodbye>(&result)) ADD_FAILURE() << goodbye->err;
  return std::holds_alternative<OperatorOptions>(result) ? std::get<OperatorOptions>(result)
                                                         : OperatorOptions{};
}

std::string refusal(std::vector<const char*> arguments) {
  const auto result = parse(std::move(arguments));
  const auto* goodbye = std::get_if<Goodbye>(&result);
  if (goodbye == nullptr) return "";
  EXPECT_EQ(goodbye->exit_status, 2);
  EXPECT_EQ(goodbye->out, "");
  return goodbye->err;
}

TEST(Options, NoneAreNeeded) {
  const OperatorOptions options = parsed({});
  EXPECT_TRUE(options.namespaces.empty());
  EXPECT_TRUE(options.leader_election.enabled);
  EXPECT_TRUE(options.watch_nodes);
  EXPECT_EQ(options.leader_election.lease_duration, milliseconds(15'000));
  EXPECT_THAT(options.runtime_image, HasSubstr("coxswain-runtime:"));
}

TEST(Options, NamespacesAreAListByCommasWithoutRepetition) {
  EXPECT_THAT(parsed({"--namespaces", "team-b,team-a,team-b"}).namespaces, ElementsAre("team-a", "team-b"));
}

TEST(Options, FlagsAreSwitchedOffByFalse) {
  EXPECT_FALSE(parsed({"--leader-elect=false"}).leader_election.enabled);
  EXPECT_FALSE(parsed({"--watch-nodes=false"}).watch_nodes);
  EXPECT_TRUE(parsed({"--leader-elect"}).leader_election.enabled);
}

TEST(Options, DurationsHaveAUnit) {
  EXPECT_EQ(parsed({"--drain-timeout=500ms"}).drain_timeout, milliseconds(500));
  EXPECT_EQ(parsed({"--drain-timeout=2m"}).drain_timeout, milliseconds(120'000));
  EXPECT_EQ(parsed({"--progress-interval=1h"}).progress_interval, milliseconds(3'600'000));
  for (const char* bad : {"--drain-timeout=5", "--drain-timeout=", "--drain-timeout=s", "--drain-timeout=-1s",
                          "--drain-timeout=1d", "--drain-timeout=99999999999s"}) {
    EXPECT_THAT(refusal({bad}), HasSubstr("--drain-timeout")) << bad;
  }
  EXPECT_THAT(refusal({"--progress-interval=10ms"}), HasSubstr("must be 1s or more"));
}

TEST(Options, WhatIsOutOfRangeIsRefusedByName) {
  EXPECT_THAT(refusal({"--workers=0"}), HasSubstr("--workers: Value 0 not in range 1 to 1000"));
  EXPECT_THAT(refusal({"--kube-api-qps=0"}), HasSubstr("--kube-api-qps"));
  EXPECT_THAT(refusal({"--log-format=xml"}), HasSubstr("--log-format"));
  EXPECT_THAT(refusal({"--namespaces=a,Team_B"}), HasSubstr("\"Team_B\" is no name of a namespace"));
  EXPECT_THAT(refusal({"--leader-election-namespace=-x"}), HasSubstr("--leader-election-namespace"));
  EXPECT_THAT(refusal({"--no-such-flag"}), HasSubstr("--no-such-flag"));
}

TEST(Options, EachHasAnEnvironmentVariableAndTheFlagWins) {
  const Variable workers("COXSWAIN_OPERATOR_WORKERS", "3");
  const Variable namespaces("COXSWAIN_OPERATOR_NAMESPACES", "b,a");
  const Variable elect("COXSWAIN_OPERATOR_LEADER_ELECT", "false");
  const Variable period("COXSWAIN_OPERATOR_LEADER_ELECTION_RETRY_PERIOD", "1s");
  EXPECT_EQ(parsed({}).workers, 3);
  EXPECT_EQ(parsed({"--workers=5"}).workers, 5);
  EXPECT_THAT(parsed({}).namespaces, ElementsAre("a", "b"));
  EXPECT_FALSE(parsed({}).leader_election.enabled);
  EXPECT_EQ(parsed({}).leader_election.retry_period, milliseconds(1000));
}

TEST(Options, ABadEnvironmentVariableIsRefusedByTheFlagsName) {
  const Variable workers("COXSWAIN_OPERATOR_WORKERS", "many");
  EXPECT_THAT(refusal({}), HasSubstr("--workers"));
}

// The kubelet sets such variables for each Service of the namespace, also for one that is called like us.
TEST(Options, NoFlagReadsWhatTheClusterSetsForAService) {
  const auto result = parse({"--help"});
  const std::string help = std::get<Goodbye>(result).out;
  const std::regex variable("Env:([A-Z_0-9]+)");
  const std::regex service(".*_(PORT|SERVICE_HOST|SERVICE_PORT)(_.*)?");
  int count = 0;
  for (std::sregex_iterator it(help.begin(), help.end(), variable), end; it != end; ++it, ++count) {
    EXPECT_FALSE(std::regex_match((*it)[1].str(), service)) << (*it)[1];
  }
  EXPECT_GT(count, 15);
  const Variable port("COXSWAIN_OPERATOR_PORT", "tcp://10.0.0.1:8080");
  const Variable host("COXSWAIN_OPERATOR_SERVICE_HOST", "10.0.0.1");
  EXPECT_EQ(parsed({}).metrics_address, ":8080");
}

TEST(Options, HelpAndVersionGoToTheirReader) {
  for (const char* flag : {"--help", "--version"}) {
    const auto result = parse({flag});
    const auto& goodbye = std::get<Goodbye>(result);
    EXPECT_EQ(goodbye.exit_status, 0);
    EXPECT_EQ(goodbye.err, "");
    EXPECT_THAT(goodbye.out, HasSubstr("coxswain"));
  }
}

}  // namespace
}  // namespace coxswain
