// A configuration that lies in no file, made readable to the workers for as long as the agent lives.
#pragma once

#include <string>

#include "contract/result.h"
#include "runtime/launch/worker_process.h"

namespace coxswain {

// An anonymous file in memory: nothing is left behind, however the agent ends.
class ResolvedConfig {
 public:
  static Result<ResolvedConfig> make(const std::string& yaml);

  // Can be opened by processes of the same user while this object lives.
  const std::string& path() const { return path_; }

 private:
  ResolvedConfig(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Fd fd_;
  std::string path_;
};

}  // namespace coxswain
