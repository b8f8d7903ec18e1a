// Log lines about a job. As text they begin with "namespace/name attempt N: "; as JSON lines (log_lines.h)
// they carry the fields job, namespace and attempt instead.
#pragma once

#include <spdlog/spdlog.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace coxswain {

struct JobRef {
  std::string namespace_name;
  std::string name;
  std::optional<int64_t> attempt;  // absent: not known, or the line is about no attempt
};

// "namespace/name attempt N: "
std::string log_prefix(const JobRef& job);

namespace log_detail {

// While it lives, what this thread logs is about `job` and begins with its prefix. spdlog has no fields of
// its own, and formats in the thread that logs.
class AboutJob {
 public:
  AboutJob(const JobRef& job, size_t prefix_bytes);
  ~AboutJob();
  AboutJob(const AboutJob&) = delete;
  AboutJob& operator=(const AboutJob&) = delete;

  const JobRef& job;
  const size_t prefix_bytes;

  // Of this thread; null: the line is about no job.
  static const AboutJob* current();
};

}  // namespace log_detail

template <typename... Arguments>
void log_job(spdlog::level::level_enum level, const JobRef& job, fmt::format_string<Arguments...> text,
             Arguments&&... arguments) {
  if (!spdlog::should_log(level)) return;
  const std::string prefix = log_prefix(job);
  const log_detail::AboutJob about(job, prefix.size());
  spdlog::log(level, "{}{}", prefix, fmt::format(text, std::forward<Arguments>(arguments)...));
}

template <typename... Arguments>
void warn_job(const JobRef& job, fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  log_job(spdlog::level::warn, job, text, std::forward<Arguments>(arguments)...);
}

}  // namespace coxswain
