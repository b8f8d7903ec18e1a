// Greedy generation, for sample answers.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/model/causal_lm.h"

namespace coxswain {

// The ids that follow `ids` (not empty), the most likely one at each place, without `ids` themselves; ends
// after max_new_tokens or with the first of eos_ids, which is included. Sets the model to eval mode
// meanwhile.
std::vector<int64_t> generate_greedy(CausalLM& model, const std::vector<int64_t>& ids, int64_t max_new_tokens,
                                     const std::vector<int64_t>& eos_ids);

}  // namespace coxswain
