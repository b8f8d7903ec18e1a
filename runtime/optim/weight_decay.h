// Which parameters weight decay applies to. Torch-free.
#pragma once

#include <string>

namespace coxswain {

// transformers' rule: not for biases and norms, told by the parameter's name.
bool weight_decay_applies(const std::string& parameter_name);

}  // namespace coxswain
