#include "operator/logging/log_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "operator/logging/job_log.h"

namespace coxswain {
namespace {

using ::testing::MatchesRegex;

// The default logger writes to a string while it lives.
class LogLines : public ::testing::Test {
 protected:
  void SetUp() override { before_ = spdlog::default_logger(); }
  void TearDown() override { spdlog::set_default_logger(before_); }

  void log_as(LogFormat format) {
    auto logger =
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(out_));
    logger->set_formatter(make_log_formatter(format));
    spdlog::set_default_logger(std::move(logger));
  }
  nlohmann::json only_line() {
    const std::string text = out_.str();
    EXPECT_EQ(std::ranges::count(text, '\n'), 1);
    return nlohmann::json::parse(text);
  }

  std::ostringstream out_;
  std::shared_ptr<spdlog::logger> before_;
};

constexpr char kTime[] =
    "20[0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\\.[0-9][0-9][0-9]Z";

TEST_F(LogLines, TextHasTimeLevelAndTheJobInFront) {
  log_as(LogFormat::kText);
  warn_job({"ns", "j", 2}, "status could not be written: {}", "no");
  EXPECT_THAT(out_.str(), MatchesRegex(std::string(kTime) +
                                       " warning ns/j attempt 2: status could not be written: no\n"));
  out_.str("");
  log_job(spdlog::level::err, {"ns", "j", std::nullopt}, "the pass failed");
  EXPECT_THAT(out_.str(), MatchesRegex(std::string(kTime) + " error ns/j: the pass failed\n"));
  out_.str("");
  spdlog::info("ready");
  EXPECT_THAT(out_.str(), MatchesRegex(std::string(kTime) + " info ready\n"));
}

TEST_F(LogLines, JsonHasTheJobAsFields) {
  log_as(LogFormat::kJson);
  warn_job({"ns", "j", 0}, "{} happened", 7);
  const nlohmann::json line = only_line();
  EXPECT_THAT(line["time"], MatchesRegex(kTime));
  EXPECT_EQ(line["level"], "warning");
  EXPECT_EQ(line["message"], "7 happened");
  EXPECT_EQ(line["job"], "j");
  EXPECT_EQ(line["namespace"], "ns");
  EXPECT_EQ(line["attempt"], 0);
}

TEST_F(LogLines, JsonWithoutAJobHasNoSuchFields) {
  log_as(LogFormat::kJson);
  { log_job(spdlog::level::debug, {"ns", "j", 1}, "not shown"); }
  spdlog::info("ready");
  const nlohmann::json line = only_line();
  EXPECT_EQ(line["message"], "ready");
  EXPECT_EQ(line.size(), 3U);
}

TEST_F(LogLines, AMessageIsOneLineWhateverIsInIt) {
  const std::string odd = "a\nb \"c\" \xff \x1b[2J";
  log_as(LogFormat::kJson);
  spdlog::info("{}", odd);
  EXPECT_EQ(only_line()["message"], "a\nb \"c\" \xEF\xBF\xBD \x1b[2J");
  out_.str("");
  log_as(LogFormat::kText);
  spdlog::info("{}", odd);
  EXPECT_THAT(out_.str(), ::testing::EndsWith(" info a\\nb \"c\" \xff \\x1b[2J\n"));
}

TEST_F(LogLines, BelowTheLevelNothingIsFormatted) {
  set_up_logging(LogFormat::kJson, "error");
  EXPECT_FALSE(spdlog::should_log(spdlog::level::warn));
  EXPECT_TRUE(spdlog::should_log(spdlog::level::err));
  set_up_logging(LogFormat::kText, "loud");
  EXPECT_TRUE(spdlog::should_log(spdlog::level::info));
  EXPECT_FALSE(spdlog::should_log(spdlog::level::debug));
}

TEST(LogFormats, AreTextAndJson) {
  EXPECT_EQ(parse_log_format("text"), LogFormat::kText);
  EXPECT_EQ(parse_log_format("json"), LogFormat::kJson);
  EXPECT_FALSE(parse_log_format("JSON"));
  EXPECT_FALSE(parse_log_format(""));
}

}  // namespace
}  // namespace coxswain
