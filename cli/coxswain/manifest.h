// A person's TrainingJob: from file to checked JSON.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "contract/result.h"
#include "operator/api/training_job.h"
#include "operator/api/validate.h"

namespace coxswain {

// All TrainingJobs of a YAML file, in its order; documents of other kinds are refused.
Result<std::vector<Json>> load_training_jobs(const std::string& path);

// The one TrainingJob of a file; several are refused.
Result<Json> load_training_job(const std::string& path);

// `setting` is PATH=VALUE: the path from `spec` (or from the top, when it begins with spec or metadata), by
// dots, with "…" around a name that has dots in it and a number for an element of a list; the value is YAML.
Result<void> apply_setting(Json& job, const std::string& setting);

// Relative paths of the configuration (model, data, checkpoint to resume from) become absolute, from
// `folder`: where the pods run is nobody's idea of "here".
void anchor_paths(Json& job, const std::filesystem::path& folder);

// Everything that is wrong with the manifest, spec.config included. `${NAME}` in the config comes from
// spec.env or from this program's environment.
std::vector<Problem> check_manifest(const Json& job);

}  // namespace coxswain
