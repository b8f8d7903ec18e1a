#include "cli/process_node/path_map.h"

#include <algorithm>

namespace coxswain {

void PathMap::add(const std::string& mount_path, const std::filesystem::path& folder) {
  std::string path = mount_path;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  mounts_.push_back({std::move(path), folder});
  std::ranges::stable_sort(mounts_, std::greater{}, [](const Mount& mount) { return mount.path.size(); });
}

std::string PathMap::rewrite_path(const std::string& path) const {
  for (const Mount& mount : mounts_) {
    if (path == mount.path) return mount.folder.string();
    if (path.starts_with(mount.path + "/")) return mount.folder.string() + path.substr(mount.path.size());
  }
  return path;
}

std::string PathMap::rewrite(const std::string& text) const {
  const auto equals = text.find('=');
  if (text.starts_with("--") && equals != std::string::npos) {
    return text.substr(0, equals + 1) + rewrite_path(text.substr(equals + 1));
  }
  return rewrite_path(text);
}

Json PathMap::rewrite_all(const Json& value) const {
  if (value.is_string()) return rewrite(value.get<std::string>());
  Json result = value;
  if (value.is_structured()) {
    for (Json& item : result) item = rewrite_all(item);
  }
  return result;
}

}  // namespace coxswain
