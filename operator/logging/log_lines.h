// How log lines look. One line for each message, whatever is in it.
#pragma once

#include <spdlog/formatter.h>

#include <memory>
#include <optional>
#include <string>

namespace coxswain {

enum class LogFormat {
  kText,  // 2026-12-01T05:29:28.123Z warning ns/j attempt 0: status could not be written
  kJson,  // {"time":"2026-12-01T05:29:28.123Z","level":"warning","message":"…","job":"j","namespace":"ns","attempt":0}
};

// "text", "json"; nothing for anything else.
std::optional<LogFormat> parse_log_format(const std::string& word);

// Times are UTC, RFC 3339, with milliseconds; levels are spdlog's words (trace, debug, info, warning, error,
// critical). Only for loggers that format in the thread that logs (spdlog's default; not its async ones).
std::unique_ptr<spdlog::formatter> make_log_formatter(LogFormat format);

// spdlog's default logger from now on: to standard error in that format, from `level` on ("info" and so on,
// spdlog's words; anything else is info). At the start of a program, before it has threads.
void set_up_logging(LogFormat format, const std::string& level);

}  // namespace coxswain
