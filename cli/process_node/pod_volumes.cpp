#include "cli/process_node/pod_volumes.h"

#include <fstream>
#include <map>
#include <optional>

#include "contract/contract.h"
#include "operator/api/parse.h"

namespace coxswain {

namespace fs = std::filesystem;

namespace {

// An emptyDir at one of these gives a container what this machine has anyway. A path in the manifest that
// begins with /tmp means this machine's.
bool is_there_already(const Json& mount) {
  const std::string path = mount.value("mountPath", "");
  return path == "/dev/shm" || path == "/tmp";
}

Json list(const Json& object, const char* field) {
  const auto it = object.find(field);
  return it != object.end() && it->is_array() ? *it : Json::array();
}

Result<void> check_volume(const Json& volume, const NodeOptions& options) {
  const std::string name = volume.value("name", "");
  if (volume.size() == 1) return {};  // no source means emptyDir
  if (volume.contains("emptyDir") || volume.contains("configMap") || volume.contains("hostPath")) return {};
  if (volume.contains("persistentVolumeClaim")) {
    const std::string claim = volume["persistentVolumeClaim"].value("claimName", "");
    if (options.volumes.contains(claim)) return {};
    return bad_input("the claim \"" + claim + "\" (volume \"" + name +
                     "\") is no folder of this machine yet: say which one with --volume " + claim + "=DIR");
  }
  std::string kind;
  for (const auto& [key, _] : volume.items()) {
    if (key != "name") kind = key;
  }
  return bad_input(
      "the volume \"" + name + "\" is one of kind " + kind +
      ", which needs a cluster: here only emptyDir, configMap, hostPath and persistentVolumeClaim work");
}

Result<void> make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error || fs::is_directory(folder)) return {};
  return fail(contract::ExitCode::kStorage,
              "cannot make the folder " + folder.string() + ": " + error.message());
}

bool is_output(const Json& container, const std::string& volume) {
  for (const Json& mount : list(container, "volumeMounts")) {
    if (mount.value("name", "") == volume && mount.value("mountPath", "") == contract::kOutputMount)
      return true;
  }
  return false;
}

fs::path folder_of(const Json& volume, const Json& container, const NodeOptions& options,
                   const fs::path& pod_folder) {
  const std::string name = volume.value("name", "");
  if (volume.contains("persistentVolumeClaim")) {
    return options.volumes.at(volume["persistentVolumeClaim"].value("claimName", ""));
  }
  if (volume.contains("hostPath")) {
    const auto mapped = options.volumes.find(name);
    return mapped != options.volumes.end() ? mapped->second : fs::path(volume["hostPath"].value("path", ""));
  }
  if (!volume.contains("configMap") && is_output(container, name)) return options.output_folder;
  return pod_folder / "volumes" / name;
}

Result<std::string> file_content(const std::string& key, const std::string& text, const PathMap& mounts) {
  if (key != contract::kConfigKey) return text;
  auto documents = load_yaml(text, key);
  if (!documents) return tl::unexpected(documents.error());
  if (documents->empty()) return text;
  return to_yaml(mounts.rewrite_all(documents->front()));
}

Result<void> write_config_map(const Json& source, const fs::path& folder, const PathMap& mounts,
                              const ConfigMapLookup& config_maps) {
  const std::string name = source.value("name", "");
  const Json map = config_maps(name);
  if (map.is_null()) {
    if (source.value("optional", false)) return {};
    return bad_input("there is no ConfigMap \"" + name +
                     "\" here: only those that Coxswain makes exist in a local run");
  }
  const Json data = map.value("data", Json::object());
  std::map<std::string, std::string> files;  // path in the volume → key
  if (source.contains("items")) {
    for (const Json& item : source["items"]) files[item.value("path", "")] = item.value("key", "");
  } else {
    for (const auto& [key, _] : data.items()) files[key] = key;
  }
  for (const auto& [path, key] : files) {
    if (!data.contains(key)) return bad_input("the ConfigMap \"" + name + "\" has no key \"" + key + "\"");
    auto content = file_content(key, data[key].get<std::string>(), mounts);
    if (!content) return tl::unexpected(content.error());
    if (auto made = make_folder((folder / path).parent_path()); !made) return made;
    std::ofstream file(folder / path, std::ios::trunc);
    if (!(file << *content << std::flush)) {
      return fail(contract::ExitCode::kStorage, "cannot write " + (folder / path).string());
    }
  }
  return {};
}

}  // namespace

Result<void> check_volumes(const Json& pod, const NodeOptions& options) {
  for (const Json& volume : list(pod.value("spec", Json::object()), "volumes")) {
    if (auto checked = check_volume(volume, options); !checked) return checked;
  }
  return {};
}

Result<PathMap> mount_volumes(const Json& pod, const Json& container, const NodeOptions& options,
                              const fs::path& pod_folder, const ConfigMapLookup& config_maps) {
  if (auto checked = check_volumes(pod, options); !checked) return tl::unexpected(checked.error());
  std::map<std::string, fs::path> folders;
  for (const Json& volume : list(pod["spec"], "volumes")) {
    const fs::path folder = folder_of(volume, container, options, pod_folder);
    if (auto made = make_folder(folder); !made) return tl::unexpected(made.error());
    folders[volume.value("name", "")] = folder;
  }
  PathMap mounts;
  for (const Json& mount : list(container, "volumeMounts")) {
    const std::string path = mount.value("mountPath", "");
    const auto folder = folders.find(mount.value("name", ""));
    if (folder == folders.end()) {
      return bad_input("the container \"" + container.value("name", "") + "\" mounts a volume \"" +
                       mount.value("name", "") + "\" that the pod doesn't have");
    }
    if (is_there_already(mount)) continue;
    const fs::path target = folder->second / mount.value("subPath", "");
    // A single file of a ConfigMap is mounted by subPath; it is made below.
    const bool is_file = mount.contains("subPath") && target.has_extension();
    if (auto made = make_folder(is_file ? target.parent_path() : target); !made)
      return tl::unexpected(made.error());
    mounts.add(path, mount.contains("subPath") ? target : folder->second);
  }
  for (const Json& volume : list(pod["spec"], "volumes")) {
    if (!volume.contains("configMap")) continue;
    auto written =
        write_config_map(volume["configMap"], folders[volume.value("name", "")], mounts, config_maps);
    if (!written) return tl::unexpected(written.error());
  }
  return mounts;
}

}  // namespace coxswain
