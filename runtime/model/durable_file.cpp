#include "runtime/model/durable_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace coxswain {
namespace {

tl::unexpected<Failure> storage_failure(const std::string& path) {
  return fail(contract::ExitCode::kStorage, path + ": could not be written: " + std::strerror(errno) + ".");
}

Result<void> write_all(int fd, const char* data, size_t bytes, const std::string& path) {
  constexpr size_t kMostAtOnce = 1u << 30;
  while (bytes > 0) {
    const ssize_t written = ::write(fd, data, std::min(bytes, kMostAtOnce));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return storage_failure(path);
    data += written;
    bytes -= static_cast<size_t>(written);
  }
  return {};
}

// Makes the rename itself durable.
bool sync_folder_of(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path();
  const FileDescriptor folder(
      ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder.fd >= 0 && ::fsync(folder.fd) == 0;
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd >= 0) ::close(fd);
}

Result<void> write_file_durably(const std::string& path,
                                const std::function<Result<void>(const FileWriter&)>& content) {
  const std::string temporary = path + ".tmp";
  const FileDescriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (file.fd < 0) return storage_failure(path);
  Result<void> written =
      content([&](const char* data, size_t bytes) { return write_all(file.fd, data, bytes, path); });
  if (written && (::fsync(file.fd) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0)) {
    written = storage_failure(path);
  }
  if (!written) {
    ::unlink(temporary.c_str());
    return written;
  }
  if (!sync_folder_of(path)) return storage_failure(path);
  return {};
}

Result<void> write_file_durably(const std::string& path, std::string_view text) {
  return write_file_durably(path, [&](const FileWriter& write) { return write(text.data(), text.size()); });
}

}  // namespace coxswain
