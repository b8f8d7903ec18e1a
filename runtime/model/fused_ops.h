// Differentiable operations that torch has only as chains of smaller ones. fp32 on the CPU takes one pass
// over memory; everything else takes torch's chain.
#pragma once

#include <torch/torch.h>

namespace coxswain {

// x / √(mean(x²) + epsilon) · weight over the last dimension; x [N, n], weight [n].
torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& weight, double epsilon);

// silu(gate) · up, both of one shape.
torch::Tensor silu_mul(const torch::Tensor& gate, const torch::Tensor& up);

// Rotary embedding in the HF layout (pairs i and i + D/2). x [N, heads, D]; cos, sin [N, D/2], without
// gradients.
torch::Tensor rotate(const torch::Tensor& x, const torch::Tensor& cos, const torch::Tensor& sin);

}  // namespace coxswain
