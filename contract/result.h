// Expected failures are values. A function that can fail in a way its caller must handle returns Result<T>.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "contract/contract.h"

namespace coxswain {

// One clear sentence for a person (which field or file, what it was, what is allowed, what to do), and the
// exit code that the program ends with if nobody handles it.
struct Failure {
  contract::ExitCode code = contract::ExitCode::kInternal;
  std::string message;
};

template <typename T>
using Result = tl::expected<T, Failure>;

inline tl::unexpected<Failure> bad_input(std::string message) {
  return tl::unexpected<Failure>({contract::ExitCode::kBadInput, std::move(message)});
}

inline tl::unexpected<Failure> fail(contract::ExitCode code, std::string message) {
  return tl::unexpected<Failure>({code, std::move(message)});
}

}  // namespace coxswain
