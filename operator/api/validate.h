// The checks of a TrainingJob, twin of the schema and CEL rules in crds/trainingjob.yaml.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/training_job.h"

namespace coxswain {

struct Problem {
  std::string field;    // `spec.runPolicy.backoffLimit`, `spec.env[2].name`, `metadata.name`
  std::string message;  // a sentence without the field: what it was, what is allowed

  bool operator==(const Problem&) const = default;
};

// One sentence: `spec.nodes: must be …`.
std::string to_string(const Problem& problem);

// Looks into spec.config, with what spec.env gives it: nothing, or one sentence that names the key. Pure. The
// runtime's parser of AITraining YAML is wired in by the program (this library does not link it).
using ConfigCheck = std::function<std::optional<std::string>(const TrainingJobSpec& spec)>;

// Problems of a manifest about to be created, in the order of the schema; empty: it is valid. `object` is the
// JSON as a person wrote it (no defaults applied). What `check_config` says is a problem of `spec.config`.
std::vector<Problem> validate(const Json& object, const ConfigCheck& check_config = nullptr);

// The same for an update of `old_object`; adds what may not change: always mutable are suspend and
// runPolicy's deadlines and TTL; where the old object is suspended also nodes, resources, image, template,
// env, envFrom, volumes, volumeMounts and config; nothing else.
std::vector<Problem> validate_update(const Json& object, const Json& old_object,
                                     const ConfigCheck& check_config = nullptr);

}  // namespace coxswain
