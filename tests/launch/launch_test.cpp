#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <nlohmann/json.hpp>

#include "runtime/launch/attempt_outcome.h"
#include "runtime/launch/line_forwarder.h"
#include "runtime/launch/master_wait.h"
#include "runtime/launch/ports.h"
#include "runtime/launch/progress_board.h"
#include "runtime/launch/rank_environment.h"
#include "runtime/launch/termination_log.h"

namespace coxswain {
namespace {

using testing::HasSubstr;
using testing::Not;

EnvironmentLookup environment(std::map<std::string, std::string> variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(RankEnvironment, WithoutVariablesIsOneProcessOnALaptop) {
  const Result<RankEnvironment> rank = read_rank_environment(environment({}));
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->rank, 0);
  EXPECT_EQ(rank->world_size, 1);
  EXPECT_EQ(rank->master_addr, "127.0.0.1");
  EXPECT_EQ(rank->master_port, 29500);
  EXPECT_EQ(rank->progress_fd, std::nullopt);
  EXPECT_EQ(rank->job.config_path, std::nullopt);
  const Result<NodeEnvironment> node = read_node_environment(environment({}));
  ASSERT_TRUE(node);
  EXPECT_EQ(node->nodes, 1);
  EXPECT_EQ(node->processes_per_node, 1);
}

TEST(RankEnvironment, ReadsTheContract) {
  const Result<RankEnvironment> rank =
      read_rank_environment(environment({{"RANK", "5"},
                                         {"WORLD_SIZE", "8"},
                                         {"LOCAL_RANK", "1"},
                                         {"LOCAL_WORLD_SIZE", "4"},
                                         {"MASTER_ADDR", "j-0.j.ns.svc"},
                                         {"MASTER_PORT", "29501"},
                                         {"COXSWAIN_PROGRESS_FD", "7"},
                                         {"TRAINING_JOB_NAME", "j"},
                                         {"TRAINING_JOB_UID", "u"},
                                         {"TRAINING_JOB_ATTEMPT", "2"},
                                         {"COXSWAIN_CONFIG", "/c"},
                                         {"COXSWAIN_OUTPUT_DIR", "/o"},
                                         {"COXSWAIN_RECOVERY_DIR", "/r"},
                                         {"COXSWAIN_RECOVERY_INTERVAL_SECONDS", "2.5"}}));
  ASSERT_TRUE(rank) << rank.error().message;
  EXPECT_EQ(rank->rank, 5);
  EXPECT_EQ(rank->world_size, 8);
  EXPECT_EQ(rank->local_rank, 1);
  EXPECT_EQ(rank->local_world_size, 4);
  EXPECT_EQ(rank->master_addr, "j-0.j.ns.svc");
  EXPECT_EQ(rank->master_port, 29501);
  EXPECT_EQ(rank->progress_fd, 7);
  EXPECT_EQ(rank->job.name, "j");
  EXPECT_EQ(rank->job.uid, "u");
  EXPECT_EQ(rank->job.attempt, 2);
  EXPECT_EQ(rank->job.config_path, "/c");
  EXPECT_EQ(rank->job.output_dir, "/o");
  EXPECT_EQ(rank->job.recovery_dir, "/r");
  EXPECT_EQ(rank->job.recovery_interval_seconds, 2.5);
}

TEST(RankEnvironment, RefusesNonsenseByName) {
  const auto error = [](std::map<std::string, std::string> variables) {
    const Result<RankEnvironment> rank = read_rank_environment(environment(std::move(variables)));
    return rank ? "accepted" : rank.error().message;
  };
  EXPECT_EQ(error({{"RANK", "two"}}),
            "The environment variable RANK is 'two', but must be a whole number from 0.");
  EXPECT_THAT(error({{"RANK", "2"}, {"WORLD_SIZE", "2"}}),
              HasSubstr("RANK is 2, but must be below WORLD_SIZE"));
  EXPECT_THAT(error({{"LOCAL_RANK", "1"}}), HasSubstr("LOCAL_RANK is 1, but must be below LOCAL_WORLD_SIZE"));
  EXPECT_THAT(error({{"MASTER_PORT", "70000"}}), HasSubstr("from 1 to 65535"));
  EXPECT_THAT(error({{"COXSWAIN_RECOVERY_INTERVAL_SECONDS", "-1"}}),
              HasSubstr("COXSWAIN_RECOVERY_INTERVAL_SECONDS"));
  const Result<NodeEnvironment> node = read_node_environment(environment({{"NODE_RANK", "1"}}));
  ASSERT_FALSE(node);
  EXPECT_THAT(node.error().message, HasSubstr("NODE_RANK is 1, but must be below NNODES"));
}

TEST(CauseOf, IsTheFirstThatFailedOnItsOwn) {
  EXPECT_FALSE(cause_of({{0, 0, false}, {1, 0, false}}));
  EXPECT_EQ(cause_of({{1, 76, false}, {0, 139, false}})->rank, 0);
  EXPECT_EQ(cause_of({{1, 0, false}, {0, 2, false}, {2, 70, false}})->exit_code, 2);
  EXPECT_EQ(cause_of({{0, 143, true}, {1, 74, false}})->rank, 1);
  EXPECT_EQ(cause_of({{1, 76, false}, {0, 137, true}})->exit_code, 76);
}

struct Output {
  Output() { EXPECT_EQ(::pipe(fds), 0); }
  ~Output() {
    ::close(fds[0]);
    ::close(fds[1]);
  }
  std::string take() {
    char buffer[65536];
    const ssize_t size = ::read(fds[0], buffer, sizeof(buffer));
    return std::string(buffer, size > 0 ? static_cast<size_t>(size) : 0);
  }
  int fds[2];
};

TEST(LineForwarder, PrefixesWholeLinesAndKeepsTheLast) {
  Output output;
  LineForwarder lines(output.fds[1], "[rank 1] ", 2);
  lines.feed("one\ntw");
  lines.feed("o\n\nthr");
  lines.feed("ee");
  lines.finish();
  EXPECT_EQ(output.take(), "[rank 1] one\n[rank 1] two\n[rank 1] \n[rank 1] three\n");
  EXPECT_EQ(lines.tail(100), "two\nthree");
  EXPECT_EQ(lines.tail(3), "ree");
}

TEST(LineForwarder, WithoutPrefixPassesBytesOnAsTheyCome) {
  Output output;
  LineForwarder lines(output.fds[1], "", 5);
  lines.feed("\r10%");
  EXPECT_EQ(output.take(), "\r10%");
  lines.feed("\r20%\n");
  EXPECT_EQ(output.take(), "\r20%\n");
}

TEST(TerminationLog, CutsToTheKubeletsLimitBetweenCharacters) {
  std::string text;
  while (text.size() < 5000) text += "ä";
  EXPECT_EQ(cut_termination_message(text, false), text.substr(0, 4096));
  EXPECT_EQ(cut_termination_message("x" + text, false).size(), 4095u);
  EXPECT_EQ(cut_termination_message(text + "x", true).size(), 4095u);
  EXPECT_EQ(cut_termination_message("short", true), "short");
}

TEST(ProgressBoard, ServesTheLastWordOfEachWorker) {
  ProgressBoard board({"job", 3, 1}, {2, 3});
  EXPECT_TRUE(nlohmann::json::parse(board.progress_json())["last_checkpoint_step"].is_null());
  board.update(2, R"({"event":"phase","phase":"train"})", 100);
  board.update(2, R"({"event":"step","step":7,"total_steps":9,"epoch":0.5,"loss":2.5,"learning_rate":0.1})",
               101);
  board.update(3, R"({"event":"step","step":6,"total_steps":9,"loss":null})", 102);
  board.update(3, R"({"event":"checkpoint","step":5})", 103);
  board.update(3, "not json", 104);
  board.update(3, R"(["event"])", 104);
  board.update(9, R"({"event":"checkpoint","step":50})", 104);
  EXPECT_EQ(nlohmann::json::parse(board.progress_json()), nlohmann::json::parse(R"({
    "job":"job","attempt":3,"node_rank":1,"last_checkpoint_step":5,
    "workers":[{"rank":2,"phase":"train","step":7,"total_steps":9,"epoch":0.5,"loss":2.5,"learning_rate":0.1,
                "updated_at":101.0},
               {"rank":3,"phase":"start","step":6,"total_steps":9,"loss":null,"updated_at":103.0}]})"));
  const std::string metrics = board.metrics_text();
  EXPECT_THAT(metrics, HasSubstr("# TYPE coxswain_step gauge"));
  EXPECT_THAT(metrics, HasSubstr("coxswain_step{rank=\"2\"} 7"));
  EXPECT_THAT(metrics, HasSubstr("coxswain_step{rank=\"3\"} 6"));
  EXPECT_THAT(metrics, HasSubstr("coxswain_loss{rank=\"2\"} 2.5"));
  EXPECT_THAT(metrics, HasSubstr("coxswain_loss{rank=\"3\"} Nan"));
  EXPECT_THAT(metrics, HasSubstr("coxswain_attempt 3"));
  EXPECT_THAT(metrics, HasSubstr("coxswain_last_checkpoint_step 5"));
  EXPECT_EQ(board.error_of(2), std::nullopt);
  board.update(2, R"({"event":"error","exit_code":2,"message":"bad row"})", 105);
  EXPECT_EQ(board.error_of(2), "bad row");
}

MasterWait wait_of(const std::string& address, int port, int timeout_ms, std::vector<std::string>& said) {
  return {address, port, std::chrono::milliseconds(timeout_ms),
          [](std::chrono::milliseconds) { return false; },
          [&said](const std::string& words) { said.push_back(words); }};
}

TEST(WaitForMaster, SaysWhatItWaitsForAndGivesUp) {
  const Result<int> port = find_free_port();
  ASSERT_TRUE(port);
  std::vector<std::string> said;
  const Result<void> nobody = wait_for_master(wait_of("127.0.0.1", *port, 20, said));
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code, contract::ExitCode::kRendezvousTimeout);
  EXPECT_THAT(nobody.error().message, HasSubstr("127.0.0.1:" + std::to_string(*port)));
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0], HasSubstr("to answer (Connection refused)"));

  // Too long for a name in the DNS, so that no resolver is asked.
  const std::string no_name(70, 'x');
  const Result<void> unknown = wait_for_master(wait_of(no_name, *port, 0, said));
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("the name " + no_name + " of the master to resolve"));
}

TEST(WaitForMaster, StopsWhenTold) {
  const Result<int> port = find_free_port();
  std::vector<std::string> said;
  MasterWait wait = wait_of("127.0.0.1", *port, 60'000, said);
  wait.sleep_or_stop = [](std::chrono::milliseconds) { return true; };
  EXPECT_EQ(wait_for_master(wait).error().code, contract::ExitCode::kStopped);
}

}  // namespace
}  // namespace coxswain
