// What the operator keeps for itself in a pod, shared by the renderer and by the warnings about manifests
// that reach for it.
#pragma once

#include <string>

#include "operator/api/training_job.h"

namespace coxswain {

// Of a container: a trainer that the kubelet starts again would be alone.
inline constexpr const char* kRestartFields[] = {"restartPolicy", "restartPolicyRules"};

// Volumes of the operator begin with this.
inline constexpr char kVolumePrefix[] = "coxswain-";
inline constexpr char kConfigVolume[] = "coxswain-config";
inline constexpr char kOutputVolume[] = "coxswain-output";
inline constexpr char kShmVolume[] = "coxswain-shm";
inline constexpr char kTmpVolume[] = "coxswain-tmp";
inline constexpr char kShmPath[] = "/dev/shm";
inline constexpr char kTmpPath[] = "/tmp";

// Set by the operator on the trainer: the contract's reserved names and the recovery interval.
bool is_reserved_env(const std::string& name);
bool is_reserved_volume(const std::string& name);
// /output and /etc/coxswain, and whatever lies under or would hide them.
bool is_reserved_mount(const std::string& mount_path);
// Labels that select and count pods.
bool is_reserved_label(const std::string& name);

// The member if it has that type, else an empty value of it.
Json member_or_empty(const Json& object, const char* key, Json::value_t type);

}  // namespace coxswain
