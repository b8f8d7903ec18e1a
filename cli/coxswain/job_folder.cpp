#include "cli/coxswain/job_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "runtime/checkpoint/commit.h"

namespace coxswain {

namespace fs = std::filesystem;

namespace {

constexpr char kJobFile[] = "job.json";

std::string holder_of(int lock) {
  char text[32] = {};
  const ssize_t size = pread(lock, text, sizeof text - 1, 0);
  return size > 0 ? std::string(text, static_cast<size_t>(size)) : "unknown";
}

}  // namespace

Result<JobFolder> JobFolder::open(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    return fail(contract::ExitCode::kStorage,
                "cannot make the state folder " + folder.string() + ": " + error.message());
  }
  const fs::path file = folder / "lock";
  const int lock = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock < 0) {
    return fail(contract::ExitCode::kStorage,
                "cannot write to the state folder " + folder.string() + ": " + std::strerror(errno));
  }
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    const std::string holder = holder_of(lock);
    close(lock);
    return fail(contract::ExitCode::kInternal,
                "this job is already running here (process " + holder + " holds " + file.string() +
                    "): stop that one first, or give this one another --state-dir");
  }
  const std::string pid = std::to_string(getpid());
  if (ftruncate(lock, 0) != 0 || pwrite(lock, pid.data(), pid.size(), 0) < 0) {
    close(lock);
    return fail(contract::ExitCode::kStorage, "cannot write " + file.string() + ": " + std::strerror(errno));
  }
  return JobFolder(folder, lock);
}

JobFolder::JobFolder(JobFolder&& other) noexcept
    : folder_(std::move(other.folder_)), lock_(std::exchange(other.lock_, -1)) {}

JobFolder::~JobFolder() {
  if (lock_ >= 0) close(lock_);
}

Result<std::optional<Json>> JobFolder::load() const {
  const fs::path file = folder_ / kJobFile;
  std::ifstream in(file);
  if (!in) return std::optional<Json>();
  Json job = Json::parse(in, nullptr, false);
  if (!job.is_discarded() && job.contains("/metadata/uid"_json_pointer))
    return std::optional<Json>(std::move(job));
  return fail(contract::ExitCode::kStorage, file.string() + " is damaged: remove it to start the job afresh");
}

Result<void> JobFolder::save(const Json& job) const {
  return write_durably(folder_ / kJobFile, job.dump(2) + "\n");
}

void JobFolder::clear_pods() const {
  std::error_code ignored;
  fs::remove_all(folder_ / "pods", ignored);
}

}  // namespace coxswain
