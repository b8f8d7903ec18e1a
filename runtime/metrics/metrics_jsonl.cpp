#include "runtime/metrics/metrics_jsonl.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/metrics/write_whole.h"

namespace coxswain {

namespace {

// Bytes of the leading lines that are whole records of steps ≤ last_step.
int64_t bytes_to_keep(const std::filesystem::path& path, int64_t last_step) {
  std::ifstream file(path, std::ios::binary);
  int64_t keep = 0;
  for (std::string line; std::getline(file, line) && !file.eof();) {
    const nlohmann::json record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!record.is_object() || !record.contains("step") || !record["step"].is_number_integer()) break;
    if (record["step"].get<int64_t>() > last_step) break;
    keep += static_cast<int64_t>(line.size()) + 1;
  }
  return keep;
}

}  // namespace

MetricsJsonl::MetricsJsonl(int fd, std::filesystem::path path) : fd_(fd), path_(std::move(path)) {}

MetricsJsonl::MetricsJsonl(MetricsJsonl&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

MetricsJsonl& MetricsJsonl::operator=(MetricsJsonl&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  return *this;
}

MetricsJsonl::~MetricsJsonl() {
  if (fd_ >= 0) ::close(fd_);
}

Result<MetricsJsonl> MetricsJsonl::open(const std::filesystem::path& path, int64_t resume_step) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  const int fd = ::open(path.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0 || ::ftruncate(fd, bytes_to_keep(path, resume_step)) != 0) {
    const std::string why = std::strerror(errno);
    if (fd >= 0) ::close(fd);
    return fail(contract::ExitCode::kStorage, "Can't write " + path.string() + ": " + why +
                                                  "; check project_name and the permissions of its volume.");
  }
  return MetricsJsonl(fd, path);
}

Result<void> MetricsJsonl::append(const StepRecord& record) {
  return write_whole(fd_, path_, to_json(record) + "\n");
}

}  // namespace coxswain
