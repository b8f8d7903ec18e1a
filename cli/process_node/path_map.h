// Where a container's paths are on this machine. There are no mounts here, so what begins with a mount path
// is rewritten to the folder behind it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "operator/api/training_job.h"

namespace coxswain {

class PathMap {
 public:
  void add(const std::string& mount_path, const std::filesystem::path& folder);

  // `text` itself, or, where it is a mount path or lies under one, the path on this machine. The longest
  // mount wins. An option's value (`--out=/output/x`) counts as well; a path inside a longer text, such as a
  // shell script, doesn't.
  std::string rewrite(const std::string& text) const;
  // The same for every string in `value`, at any depth.
  Json rewrite_all(const Json& value) const;

 private:
  struct Mount {
    std::string path;  // without a slash at the end
    std::filesystem::path folder;
  };
  std::string rewrite_path(const std::string& path) const;

  std::vector<Mount> mounts_;  // longest path first
};

}  // namespace coxswain
