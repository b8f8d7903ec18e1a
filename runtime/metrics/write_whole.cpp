#include "runtime/metrics/write_whole.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace coxswain {

Result<void> write_whole(int fd, const std::filesystem::path& path, const std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0)
      return fail(contract::ExitCode::kStorage, "Can't write " + path.string() + ": " + std::strerror(errno) +
                                                    "; check the space on its volume.");
    done += static_cast<size_t>(written);
  }
  return {};
}

}  // namespace coxswain
