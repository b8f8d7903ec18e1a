#include "runtime/model/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace coxswain {
namespace {

struct FileDescriptor {
  int fd = -1;
  ~FileDescriptor() {
    if (fd >= 0) ::close(fd);
  }
};

std::string errno_text() {
  return std::strerror(errno);
}

}  // namespace

MappedFile::~MappedFile() {
  if (data != nullptr) ::munmap(data, bytes);
}

Result<std::shared_ptr<MappedFile>> map_file(const std::string& path) {
  const FileDescriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat info {};
  if (file.fd < 0 || ::fstat(file.fd, &info) != 0)
    return bad_input(path + ": could not be opened: " + errno_text() + ".");
  if (!S_ISREG(info.st_mode)) return bad_input(path + ": is not a file.");
  auto mapped = std::make_shared<MappedFile>();
  mapped->path = path;
  mapped->bytes = static_cast<size_t>(info.st_size);
  if (mapped->bytes == 0) return mapped;
  void* data =
      ::mmap(nullptr, mapped->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.fd, 0);
  if (data == MAP_FAILED) {
    return fail(contract::ExitCode::kStorage,
                path + ": could not be mapped into memory: " + errno_text() + ".");
  }
  mapped->data = static_cast<char*>(data);
  return mapped;
}

}  // namespace coxswain
