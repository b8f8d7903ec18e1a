// The output head and the cross-entropy in one, without ever holding the logits of all tokens.
//
// Logits of a chunk of tokens are computed, turned into their own gradient in place, and used at once for the
// gradients of hidden states and weight; backward only scales those. A gradient is kept only where one is
// asked for.
#pragma once

#include <torch/torch.h>

namespace coxswain {

// hidden [N, H], weight [V, H], targets int64 [N], each in 0…V-1 (or kIgnoredLabel: no part of the sum). The
// sum over tokens of -log softmax(hidden·weightᵀ)[target] as a float scalar. Backward may run once.
torch::Tensor head_loss(const torch::Tensor& hidden, const torch::Tensor& weight,
                        const torch::Tensor& targets);

}  // namespace coxswain
