// `coxswain-worker generate`: one answer of a model, to see what a training has done.
#pragma once

#include <cstdint>
#include <string>

#include "contract/result.h"

namespace coxswain {

struct GenerateOptions {
  std::string model_folder;
  std::string adapter_folder;  // empty: none
  std::string prompt;
  std::string system_prompt;  // empty: none
  int64_t max_new_tokens = 64;
};

// The most likely answer (greedy). With a chat template the prompt is the user's message; without, text to go
// on from.
Result<std::string> generate_answer(const GenerateOptions& options);

}  // namespace coxswain
