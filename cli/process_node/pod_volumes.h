// A pod's volumes as folders of this machine.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "cli/process_node/node_options.h"
#include "cli/process_node/path_map.h"
#include "contract/result.h"
#include "operator/api/training_job.h"

namespace coxswain {

// The ConfigMap of that name in the pod's namespace, or null.
using ConfigMapLookup = std::function<Json(const std::string& name)>;

// Refuses a pod whose volumes this machine has nothing for: an unmapped claim, a kind of volume that needs a
// cluster. Makes nothing.
Result<void> check_volumes(const Json& pod, const NodeOptions& options);

// Makes the folders of `pod` (its own lie under `pod_folder`), writes its ConfigMaps, and says where
// `container`'s mount paths lead. The strings of the training configuration (contract::kConfigKey) are
// rewritten through `mounts`.
Result<PathMap> mount_volumes(const Json& pod, const Json& container, const NodeOptions& options,
                              const std::filesystem::path& pod_folder, const ConfigMapLookup& config_maps);

}  // namespace coxswain
