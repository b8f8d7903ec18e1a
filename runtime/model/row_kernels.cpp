#include "runtime/model/row_kernels.h"

#include <algorithm>
#include <cmath>

// One machine's build runs on another's CPU: the best variant is picked when the program is loaded.
// Sanitizers and the loader's picking don't go together.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
#define COXSWAIN_FOR_EACH_CPU __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define COXSWAIN_FOR_EACH_CPU
#endif

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
// glibc has vector variants of expf, but tells the compiler only under -ffast-math as a whole.
extern "C" __attribute__((simd("notinbranch"))) float expf(float) noexcept;
#endif

namespace coxswain {

COXSWAIN_FOR_EACH_CPU
float rms_norm_row(const float* __restrict x, const float* __restrict weight, int64_t n, float epsilon,
                   float* __restrict y) {
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i] * x[i];
  const float r = 1.0f / std::sqrt(sum / static_cast<float>(n) + epsilon);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * r * weight[i];
  return r;
}

COXSWAIN_FOR_EACH_CPU
void rms_norm_row_backward(const float* __restrict x, const float* __restrict weight,
                           const float* __restrict dy, float r, int64_t n, float* __restrict dx,
                           float* __restrict dweight) {
  float dot = 0;
  for (int64_t i = 0; i < n; ++i) dot += dy[i] * weight[i] * x[i];
  const float along_x = dot * r * r * r / static_cast<float>(n);
  for (int64_t i = 0; i < n; ++i) dx[i] = dy[i] * weight[i] * r - x[i] * along_x;
  if (dweight == nullptr) return;
  for (int64_t i = 0; i < n; ++i) dweight[i] += dy[i] * x[i] * r;
}

COXSWAIN_FOR_EACH_CPU
void silu_mul(const float* __restrict gate, const float* __restrict up, int64_t n, float* __restrict y) {
  for (int64_t i = 0; i < n; ++i) y[i] = gate[i] / (1.0f + ::expf(-gate[i])) * up[i];
}

COXSWAIN_FOR_EACH_CPU
void silu_mul_backward(const float* __restrict gate, const float* __restrict up, const float* __restrict dy,
                       int64_t n, float* __restrict dgate, float* __restrict dup) {
  for (int64_t i = 0; i < n; ++i) {
    const float sigmoid = 1.0f / (1.0f + ::expf(-gate[i]));
    dup[i] = dy[i] * gate[i] * sigmoid;
    dgate[i] = dy[i] * up[i] * sigmoid * (1.0f + gate[i] * (1.0f - sigmoid));
  }
}

COXSWAIN_FOR_EACH_CPU
void rotate_head(const float* __restrict x, const float* __restrict cos, const float* __restrict sin,
                 int64_t half, float* __restrict y) {
  for (int64_t i = 0; i < half; ++i) {
    y[i] = x[i] * cos[i] - x[i + half] * sin[i];
    y[i + half] = x[i + half] * cos[i] + x[i] * sin[i];
  }
}

COXSWAIN_FOR_EACH_CPU
void rotate_head_back(const float* __restrict x, const float* __restrict cos, const float* __restrict sin,
                      int64_t half, float* __restrict y) {
  for (int64_t i = 0; i < half; ++i) {
    y[i] = x[i] * cos[i] + x[i + half] * sin[i];
    y[i + half] = x[i + half] * cos[i] - x[i] * sin[i];
  }
}

COXSWAIN_FOR_EACH_CPU
double cross_entropy_row(float* logits, int64_t n, int64_t target) {
  float largest = logits[0];
  for (int64_t i = 1; i < n; ++i) largest = logits[i] > largest ? logits[i] : largest;
  const float of_target = logits[target] - largest;
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    logits[i] = ::expf(logits[i] - largest);
    sum += logits[i];
  }
  const float scale = 1.0f / sum;
  for (int64_t i = 0; i < n; ++i) logits[i] *= scale;
  logits[target] -= 1.0f;
  return std::log(static_cast<double>(sum)) - static_cast<double>(of_target);
}

}  // namespace coxswain
