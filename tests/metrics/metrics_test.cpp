#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>
#include <vector>

#include "runtime/metrics/event_record.h"
#include "runtime/metrics/training_metrics.h"

namespace coxswain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "coxswain-metrics-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

StepRecord record_of(int64_t step, double loss) {
  StepRecord record;
  record.step = step;
  record.epoch = 0.5;
  record.loss = loss;
  record.grad_norm = 1.25;
  record.learning_rate = 1e-4;
  record.tokens = 512;
  record.tokens_per_second = 1000;
  record.step_seconds = 0.5;
  record.rss_mib = 300;
  return record;
}

std::vector<std::pair<int64_t, double>> steps_and_losses(const std::filesystem::path& path) {
  std::vector<std::pair<int64_t, double>> steps;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json record = nlohmann::json::parse(line);
    steps.emplace_back(record["step"], record["loss"]);
  }
  return steps;
}

void append_steps(const std::filesystem::path& path, int64_t resume_step, int64_t last_step, double loss) {
  Result<MetricsJsonl> metrics = MetricsJsonl::open(path, resume_step);
  ASSERT_TRUE(metrics) << metrics.error().message;
  for (int64_t step = resume_step + 1; step <= last_step; ++step)
    ASSERT_TRUE(metrics->append(record_of(step, loss)));
}

TEST(StepRecord, IsOneJsonObjectInAFixedOrder) {
  EXPECT_EQ(to_json(record_of(3, 2.5)),
            R"({"step":3,"epoch":0.5,"loss":2.5,"grad_norm":1.25,"learning_rate":0.0001,"tokens":512,)"
            R"("tokens_per_second":1000.0,"step_seconds":0.5,"rss_mib":300})");
}

TEST(StepRecord, NumbersThatJsonCannotSayBecomeNull) {
  StepRecord record = record_of(3, std::nan(""));
  record.grad_norm = HUGE_VAL;
  const nlohmann::json json = nlohmann::json::parse(to_json(record));
  EXPECT_TRUE(json["loss"].is_null());
  EXPECT_TRUE(json["grad_norm"].is_null());
}

TEST(StepRecord, KnowsTheMemoryOfThisProcess) {
  EXPECT_GT(current_rss_mib(), 1);
  EXPECT_LT(current_rss_mib(), 1000);
}

TEST(MetricsJsonl, HoldsEachStepOnceOverAResume) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "project" / "metrics.jsonl";
  append_steps(path, 0, 5, 1.0);
  append_steps(path, 3, 6, 2.0);
  EXPECT_THAT(steps_and_losses(path), ElementsAre(std::pair(1, 1.0), std::pair(2, 1.0), std::pair(3, 1.0),
                                                  std::pair(4, 2.0), std::pair(5, 2.0), std::pair(6, 2.0)));
}

TEST(MetricsJsonl, DropsATornLastLine) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "metrics.jsonl";
  append_steps(path, 0, 3, 1.0);
  for (const size_t torn : {size_t{1}, size_t{20}}) {
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - torn);
    append_steps(path, 2, 3, 2.0);
    EXPECT_THAT(steps_and_losses(path), ElementsAre(std::pair(1, 1.0), std::pair(2, 1.0), std::pair(3, 2.0)));
  }
}

TEST(MetricsJsonl, AFreshRunStartsAnEmptyFile) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "metrics.jsonl";
  append_steps(path, 0, 3, 1.0);
  append_steps(path, 0, 1, 2.0);
  EXPECT_THAT(steps_and_losses(path), ElementsAre(std::pair(1, 2.0)));
}

TEST(MetricsJsonl, AFolderThatCannotBeMadeIsAStorageFailure) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "x";
  const Result<MetricsJsonl> metrics = MetricsJsonl::open(folder.path() / "file" / "metrics.jsonl", 0);
  ASSERT_FALSE(metrics);
  EXPECT_EQ(metrics.error().code, contract::ExitCode::kStorage);
  EXPECT_THAT(metrics.error().message, HasSubstr("metrics.jsonl"));
}

// Known answers: CRC-32C of "123456789" is e3069283; an empty record has length 0.
TEST(EventRecord, FramesByMaskedCrc32c) {
  const std::string record = frame_record("123456789");
  ASSERT_EQ(record.size(), 8u + 4 + 9 + 4);
  EXPECT_EQ(record.substr(0, 8), std::string("\x09\0\0\0\0\0\0\0", 8));
  uint32_t masked = 0;
  std::memcpy(&masked, record.data() + 21, 4);
  const uint32_t rotated = masked - 0xa282ead8u;
  EXPECT_EQ(rotated >> 17 | rotated << 15, 0xe3069283u);
}

struct PipePair {
  PipePair() { EXPECT_EQ(::pipe(fds), 0); }
  ~PipePair() {
    close_read();
    ::close(fds[1]);
  }
  void close_read() {
    if (fds[0] >= 0) ::close(std::exchange(fds[0], -1));
  }
  std::string read_all() {
    ::fcntl(fds[0], F_SETFL, O_NONBLOCK);
    std::string text(1 << 20, '\0');
    const ssize_t size = ::read(fds[0], text.data(), text.size());
    text.resize(size > 0 ? static_cast<size_t>(size) : 0);
    return text;
  }
  int fds[2];
};

TEST(ProgressPipe, SpeaksTheContract) {
  PipePair pipe;
  const ProgressPipe progress(pipe.fds[1]);
  progress.phase(Phase::kRendezvous);
  progress.step(record_of(4, std::nan("")), 10);
  progress.checkpoint(4);
  progress.error(contract::ExitCode::kStorage, "disk full: \"data\"");
  EXPECT_EQ(
      pipe.read_all(),
      "{\"event\":\"phase\",\"phase\":\"rendezvous\"}\n"
      "{\"event\":\"step\",\"step\":4,\"total_steps\":10,\"epoch\":0.5,\"loss\":null,\"grad_norm\":1.25,"
      "\"learning_rate\":0.0001,\"tokens_per_second\":1000.0}\n"
      "{\"event\":\"checkpoint\",\"step\":4}\n"
      "{\"event\":\"error\",\"exit_code\":74,\"message\":\"disk full: \\\"data\\\"\"}\n");
}

TEST(ProgressPipe, CutsAMessageThatWouldNotGoInOneWrite) {
  PipePair pipe;
  const ProgressPipe progress(pipe.fds[1]);
  progress.error(contract::ExitCode::kInternal, std::string(10'000, '"') + "\xff");
  const std::string line = pipe.read_all();
  EXPECT_LE(line.size(), static_cast<size_t>(PIPE_BUF));
  EXPECT_GT(nlohmann::json::parse(line)["message"].get<std::string>().size(), 1000u);
}

TEST(ProgressPipe, SurvivesAnAgentThatDoesNotReadOrIsGone) {
  PipePair pipe;
  const ProgressPipe progress(pipe.fds[1]);
  for (int step = 1; step <= 5000; ++step)
    progress.step(record_of(step, 1.0), 5000);  // more than a pipe holds
  std::istringstream lines(pipe.read_all());
  int whole = 0;
  for (std::string line; std::getline(lines, line); ++whole)
    EXPECT_EQ(nlohmann::json::parse(line)["step"], whole + 1);
  EXPECT_GT(whole, 10);
  EXPECT_LT(whole, 5000);
  pipe.close_read();
  progress.step(record_of(1, 1.0), 5000);
  progress.error(contract::ExitCode::kInternal, "nobody hears");
  SUCCEED() << "no SIGPIPE";
}

TEST(ProgressPipe, DoesNothingWithoutAnAgent) {
  ProgressPipe(std::nullopt).phase(Phase::kLoad);
}

TEST(TerminalLine, SaysWhatOneWatchesFor) {
  EXPECT_EQ(format_progress_line(record_of(50, 2.34567), 200, 125, 120),
            "step 50/200 [=====>                  ]  25%  loss 2.3457  lr 1.00e-04  grad_norm 1.250  1000 "
            "tok/s  ETA "
            "02:05");
  EXPECT_EQ(format_progress_line(record_of(200, 2), 200, 0, 0),
            "step 200/200 100%  loss 2.0000  lr 1.00e-04  grad_norm 1.250  1000 tok/s  ETA 00:00");
  EXPECT_THAT(format_progress_line(record_of(1, 2), 200, -1, 0), HasSubstr("ETA --:--"));
  EXPECT_THAT(format_progress_line(record_of(1, 2), 200, 3725, 0), HasSubstr("ETA 1:02:05"));
  EXPECT_LT(format_progress_line(record_of(1, 2), 200, 3725, 40).size(), 40u);
}

TEST(TerminalLine, PrintsPlainLinesWhereOutputIsNoTerminal) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "out";
  std::FILE* out = std::fopen(path.c_str(), "w");
  std::chrono::steady_clock::time_point now{};
  {
    TerminalLine line(out, 0, 11, 5, [&] { return now; });
    for (int step = 1; step <= 11; ++step) {
      now += std::chrono::seconds(2);
      line.step(record_of(step, 1.0));
    }
    line.message("saved");
  }
  std::fclose(out);
  std::istringstream text(read_text(path));
  std::vector<std::string> starts;
  std::string second;
  for (std::string line; std::getline(text, line);) {
    starts.push_back(line.substr(0, line.find(' ', 5)));
    if (starts.size() == 2) second = line;
  }
  EXPECT_THAT(starts, ElementsAre("step 1/11", "step 5/11", "step 10/11", "step 11/11", "saved"));
  EXPECT_THAT(second, HasSubstr("ETA 00:12"));
}

TEST(TrainingMetrics, ReportsAStepEverywhere) {
  const TemporaryFolder folder;
  PipePair pipe;
  const ProgressPipe progress(pipe.fds[1]);
  std::FILE* out = std::fopen((folder.path() / "out").c_str(), "w");
  {
    TrainingMetricsOptions options;
    options.project_folder = folder.path() / "project";
    options.total_steps = 2;
    options.terminal = out;
    Result<TrainingMetrics> metrics = TrainingMetrics::open(options, progress);
    ASSERT_TRUE(metrics) << metrics.error().message;
    EXPECT_TRUE(metrics->step(record_of(1, 2.0)));
    EXPECT_TRUE(metrics->step(record_of(2, 1.0)));
    metrics->finish();
  }
  std::fclose(out);
  EXPECT_THAT(steps_and_losses(folder.path() / "project/metrics.jsonl"),
              ElementsAre(std::pair(1, 2.0), std::pair(2, 1.0)));
  EXPECT_THAT(read_text(folder.path() / "out"), HasSubstr("step 2/2"));
  EXPECT_THAT(pipe.read_all(), HasSubstr("\"step\":2,\"total_steps\":2"));
  EXPECT_FALSE(std::filesystem::is_empty(folder.path() / "project/runs"));

  TrainingMetricsOptions options;
  options.project_folder = folder.path() / "quiet";
  options.tensorboard = false;
  ASSERT_TRUE(TrainingMetrics::open(options, progress));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "quiet/runs"));
}

}  // namespace
}  // namespace coxswain
