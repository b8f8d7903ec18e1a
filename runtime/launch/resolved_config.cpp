#include "runtime/launch/resolved_config.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace coxswain {

Result<ResolvedConfig> ResolvedConfig::make(const std::string& yaml) {
  Fd fd(::memfd_create("config.yaml", MFD_CLOEXEC));
  if (!fd || ::write(fd.get(), yaml.data(), yaml.size()) != static_cast<ssize_t>(yaml.size()))
    return fail(contract::ExitCode::kInternal,
                std::string("Can't keep the configuration for the workers: ") + std::strerror(errno) + ".");
  const std::string path = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd.get());
  return ResolvedConfig(std::move(fd), path);
}

}  // namespace coxswain
