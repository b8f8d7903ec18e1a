// Of a PodTemplateSpec, the parts that the operator and a local run read: their types, as an API server has
// them. The TrainingJob's own schema leaves them open, so that a mistake there would come to light only when
// pods are created.
#pragma once

#include <vector>

#include "operator/api/validate.h"

namespace coxswain {

// Appends the problems of spec.template, env, envFrom, volumes and volumeMounts, at their paths in the
// manifest. `spec` is well-typed by the TrainingJob's schema.
void check_pod_parts(const Json& spec, std::vector<Problem>& problems);

// Without members that are null, at any depth: an API server reads null as absent.
Json without_nulls(Json value);

}  // namespace coxswain
