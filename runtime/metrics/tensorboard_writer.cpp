#include "runtime/metrics/tensorboard_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <utility>

#include "runtime/metrics/event_record.h"
#include "runtime/metrics/write_whole.h"

namespace coxswain {

namespace {

const std::string kPrefix = "events.out.tfevents.";

double wall_time_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  char name[256] = "localhost";
  ::gethostname(name, sizeof(name) - 1);
  return name;
}

// Seconds in the name of the newest event file of the folder; 0: there is none.
int64_t newest_file_time(const std::filesystem::path& folder) {
  int64_t newest = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    int64_t seconds = 1;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), seconds);
    newest = std::max(newest, seconds);
  }
  return newest;
}

}  // namespace

TensorBoardWriter::TensorBoardWriter(int fd, std::filesystem::path path) : fd_(fd), path_(std::move(path)) {}

TensorBoardWriter::TensorBoardWriter(TensorBoardWriter&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

TensorBoardWriter& TensorBoardWriter::operator=(TensorBoardWriter&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  return *this;
}

TensorBoardWriter::~TensorBoardWriter() {
  if (fd_ >= 0) ::close(fd_);
}

Result<TensorBoardWriter> TensorBoardWriter::open(const std::filesystem::path& folder, int64_t resume_step) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const double now = wall_time_now();
  const int64_t newest = newest_file_time(folder);
  // Readers take the files of a folder in the order of their names.
  const int64_t seconds = std::max(static_cast<int64_t>(now), newest + 1);
  const std::filesystem::path path =
      folder / fmt::format("{}{:010}.{}.{}.0", kPrefix, seconds, host_name(), ::getpid());
  const int fd = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0)
    return fail(contract::ExitCode::kStorage, "Can't write " + path.string() + ": " + std::strerror(errno) +
                                                  "; check project_name and the permissions of its volume.");
  TensorBoardWriter writer(fd, path);
  Result<void> written = writer.write_event(encode_version_event(now));
  if (written && (newest > 0 || resume_step > 0))
    written = writer.write_event(encode_restart_event(now, resume_step + 1));
  if (!written) return tl::unexpected(written.error());
  return writer;
}

Result<void> TensorBoardWriter::write_event(const std::string& event) {
  return write_whole(fd_, path_, frame_record(event));
}

Result<void> TensorBoardWriter::add_scalars(int64_t step, double wall_time,
                                            const std::vector<std::pair<std::string, double>>& scalars) {
  return write_event(encode_scalars_event(wall_time, step, scalars));
}

Result<void> TensorBoardWriter::add(const StepRecord& record) {
  return add_scalars(record.step, wall_time_now(),
                     {{"train/loss", record.loss},
                      {"train/grad_norm", record.grad_norm},
                      {"train/learning_rate", record.learning_rate},
                      {"train/epoch", record.epoch},
                      {"train/tokens_per_second", record.tokens_per_second},
                      {"train/step_seconds", record.step_seconds},
                      {"train/rss_mib", static_cast<double>(record.rss_mib)}});
}

}  // namespace coxswain
