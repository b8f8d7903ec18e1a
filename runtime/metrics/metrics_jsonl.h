// metrics.jsonl: one StepRecord a line, each step once.
#pragma once

#include <filesystem>

#include "contract/result.h"
#include "runtime/metrics/step_record.h"

namespace coxswain {

// Each record is one write(2), so a kill leaves whole lines and at most one torn last one. One writer at a
// time.
class MetricsJsonl {
 public:
  // Opens `path` to go on after step `resume_step` (0: from the start): cuts the file before the first line
  // that is torn or whose step is greater. Creates file and folders.
  static Result<MetricsJsonl> open(const std::filesystem::path& path, int64_t resume_step);

  MetricsJsonl(MetricsJsonl&& other) noexcept;
  MetricsJsonl& operator=(MetricsJsonl&& other) noexcept;
  ~MetricsJsonl();

  Result<void> append(const StepRecord& record);

 private:
  MetricsJsonl(int fd, std::filesystem::path path);

  int fd_ = -1;
  std::filesystem::path path_;
};

}  // namespace coxswain
