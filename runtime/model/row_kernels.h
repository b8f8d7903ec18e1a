// Arithmetic on single rows of fp32 numbers, vectorised for the CPU that runs it. Torch-free; no threads.
#pragma once

#include <cstdint>

namespace coxswain {

// y = x · r · weight with r = 1/√(mean(x²) + epsilon), which is returned.
float rms_norm_row(const float* x, const float* weight, int64_t n, float epsilon, float* y);

// Given dy and r of the forward: dx; and adds the row's part to dweight unless that is null.
void rms_norm_row_backward(const float* x, const float* weight, const float* dy, float r, int64_t n,
                           float* dx, float* dweight);

// y = gate · sigmoid(gate) · up
void silu_mul(const float* gate, const float* up, int64_t n, float* y);
void silu_mul_backward(const float* gate, const float* up, const float* dy, int64_t n, float* dgate,
                       float* dup);

// Rotates the pairs (x[i], x[i + half]) by the angles given as cos and sin [half].
void rotate_head(const float* x, const float* cos, const float* sin, int64_t half, float* y);
void rotate_head_back(const float* x, const float* cos, const float* sin, int64_t half, float* y);

// Returns the cross-entropy of the row's logits for `target`, and turns the logits into its derivative with
// respect to them (softmax minus one-hot).
double cross_entropy_row(float* logits, int64_t n, int64_t target);

}  // namespace coxswain
