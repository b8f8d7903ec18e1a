// How the program's environment is read: through a function, so that tests and `coxswain validate` supply
// their own.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace coxswain {

// The variable's value, or nothing where it isn't set.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;

EnvironmentLookup process_environment();

}  // namespace coxswain
