// What the operator can say of a job's spec.config before a pod exists.
#pragma once

#include <optional>
#include <string>

#include "operator/api/training_job.h"

namespace coxswain {

// The runtime's own parser on spec.config: nothing, or its sentence. `${NAME}` is what spec.env writes out; a
// config that uses any other name is left to the runtime, since only the pod will know its value. Pure: the
// program's own environment is not looked at.
std::optional<std::string> check_config_of(const TrainingJobSpec& spec);

}  // namespace coxswain
