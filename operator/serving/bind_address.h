// Where the operator listens, as a flag says it. Pure.
#pragma once

#include <optional>
#include <string>

#include "contract/result.h"

namespace coxswain {

struct BindAddress {
  std::string host;  // "": all addresses
  int port = 0;      // 0: any free one
};

// ":8080", "127.0.0.1:8080", "[::1]:8080", "name:8080"; nothing for "" and "0": switched off. `flag` names
// the setting in the failure.
Result<std::optional<BindAddress>> parse_bind_address(const std::string& flag, const std::string& text);

}  // namespace coxswain
