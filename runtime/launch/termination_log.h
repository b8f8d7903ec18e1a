// The last error of a pod, where Kubernetes reads it (status.containerStatuses[].state.terminated.message).
#pragma once

#include <optional>
#include <string>

#include "runtime/config/environment.h"

namespace coxswain {

// COXSWAIN_TERMINATION_LOG, else the kubelet's file where it exists; nothing: nobody reads one.
std::optional<std::string> termination_log_path(const EnvironmentLookup& environment);

// Cut to the kubelet's limit, at the front if `keep_end`, without tearing a UTF-8 character.
std::string cut_termination_message(const std::string& message, bool keep_end);

// Replaces the file's content. A failure is told on stderr and otherwise ignored: it must not hide the error
// itself.
void write_termination_message(const std::string& path, const std::string& message);

}  // namespace coxswain
