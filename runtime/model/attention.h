// Causal attention over flat tokens, and rotary tables.
#pragma once

#include <torch/torch.h>

#include "runtime/model/causal_lm.h"
#include "runtime/model/llama_config.h"

namespace coxswain {

// Inverse frequencies [D/2] in fp32, by transformers' formulas.
torch::Tensor rope_inverse_frequencies(const RopeConfig& rope, int64_t head_size);

// Fills rotary_cos and rotary_sin [N, D/2] for the positions.
void fill_rotary_tables(AttentionInput& attention, const torch::Tensor& inverse_frequencies);

// q [N, heads, D], k and v [N, KV heads, D] → [N, heads·D]. With a cache, `layer` is the cache's entry to
// read and extend: the first call with an empty cache may bring many tokens, each later one exactly one.
torch::Tensor causal_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                               const AttentionInput& attention, size_t layer);

}  // namespace coxswain
