// Checks a JSON value by the table of schema.h, as an API server checks a custom resource.
#pragma once

#include <string>
#include <vector>

#include "operator/api/schema.h"
#include "operator/api/validate.h"

namespace coxswain {

// Appends the problems of `value` (no defaults applied) at `path`, in the order of the schema.
void check_schema(const Schema& schema, const Json& value, const std::string& path,
                  std::vector<Problem>& problems);

// The closest of `names` if it is close enough to be what was meant, else empty.
std::string nearest_name(const std::string& name, const std::vector<std::string>& names);

}  // namespace coxswain
