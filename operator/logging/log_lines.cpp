#include "operator/logging/log_lines.h"

#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string_view>

#include "operator/logging/job_log.h"

namespace coxswain {

namespace {

using spdlog::details::log_msg;

std::string rfc3339(spdlog::log_clock::time_point time) {
  const auto since = std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch());
  const std::time_t seconds = std::chrono::floor<std::chrono::seconds>(since).count();
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, since.count() % 1000);
}

std::string_view view(spdlog::string_view_t text) {
  return {text.data(), text.size()};
}

void append(std::string_view text, spdlog::memory_buf_t& to) {
  to.append(text.data(), text.data() + text.size());
}

class TextFormatter : public spdlog::formatter {
 public:
  void format(const log_msg& message, spdlog::memory_buf_t& to) override {
    append(rfc3339(message.time), to);
    to.push_back(' ');
    append(view(spdlog::level::to_string_view(message.level)), to);
    to.push_back(' ');
    // What others said (an API server, a pod) may not look like lines of ours, nor move a terminal's cursor.
    for (const char c : view(message.payload)) {
      const auto code = static_cast<unsigned char>(c);
      if (c == '\n') {
        append("\\n", to);
      } else if (code < 0x20 || code == 0x7f) {
        append(fmt::format("\\x{:02x}", code), to);
      } else {
        to.push_back(c);
      }
    }
    to.push_back('\n');
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<TextFormatter>(); }
};

class JsonFormatter : public spdlog::formatter {
 public:
  void format(const log_msg& message, spdlog::memory_buf_t& to) override {
    const log_detail::AboutJob* about = log_detail::AboutJob::current();
    std::string_view text = view(message.payload);
    if (about != nullptr) text.remove_prefix(std::min(about->prefix_bytes, text.size()));
    nlohmann::ordered_json line = {{"time", rfc3339(message.time)},
                                   {"level", view(spdlog::level::to_string_view(message.level))},
                                   {"message", text}};
    if (about != nullptr) {
      line["job"] = about->job.name;
      line["namespace"] = about->job.namespace_name;
      if (about->job.attempt) line["attempt"] = *about->job.attempt;
    }
    append(line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace), to);
    to.push_back('\n');
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<JsonFormatter>(); }
};

}  // namespace

std::optional<LogFormat> parse_log_format(const std::string& word) {
  if (word == "text") return LogFormat::kText;
  if (word == "json") return LogFormat::kJson;
  return std::nullopt;
}

std::unique_ptr<spdlog::formatter> make_log_formatter(LogFormat format) {
  if (format == LogFormat::kJson) return std::make_unique<JsonFormatter>();
  return std::make_unique<TextFormatter>();
}

void set_up_logging(LogFormat format, const std::string& level) {
  auto logger =
      std::make_shared<spdlog::logger>("coxswain", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_formatter(make_log_formatter(format));
  const spdlog::level::level_enum wanted = spdlog::level::from_str(level);
  logger->set_level(wanted == spdlog::level::off && level != "off" ? spdlog::level::info : wanted);
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace coxswain
