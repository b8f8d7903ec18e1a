// Whether a tool keeps applying a job's manifest from a repository.
#pragma once

#include <optional>
#include <string>

#include "operator/api/training_job.h"

namespace coxswain {

// "Argo CD" or "Flux", by the marks that they leave on what they apply. The label app.kubernetes.io/instance
// is none: Helm and people set it too.
std::optional<std::string> gitops_tool(const ObjectMeta& metadata);

}  // namespace coxswain
