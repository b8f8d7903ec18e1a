// The environment of a container as a process of this machine.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/process_node/path_map.h"
#include "cli/process_node/pod_volumes.h"
#include "contract/result.h"
#include "operator/api/training_job.h"

namespace coxswain {

using Environment = std::map<std::string, std::string>;

// This program's own environment, less the names that the contract reserves: here stands for the image's.
Environment base_environment();

// `env` and `envFrom` of `container` on top of `base`, in Kubernetes' order, with $(NAME) expanded and paths
// rewritten through `mounts`. Where the container sets a name of `replaced`, it gets that value instead
// (addresses and ports that mean something only in a cluster). A Secret is taken from `base`, under the
// variable's own name.
Result<Environment> container_environment(const Json& pod, const Json& container, const Environment& base,
                                          const Environment& replaced, const PathMap& mounts,
                                          const ConfigMapLookup& config_maps);

// Kubernetes' $(NAME) in commands and values: an unknown name stays as it is, $$ is a dollar.
std::string expand(const std::string& text, const Environment& environment);

}  // namespace coxswain
