#include "runtime/model/linear.h"

#include "runtime/model/fused_ops.h"

namespace coxswain {

// torch::empty reserves addresses, not memory: what is never written before weights are loaded costs nothing.
Linear::Linear(int64_t in_features, int64_t out_features, bool with_bias)
    : weight(register_parameter("weight", torch::empty({out_features, in_features}))) {
  if (with_bias) bias = register_parameter("bias", torch::empty({out_features}));
}

torch::Tensor Linear::forward(const torch::Tensor& x) {
  torch::Tensor y = at::linear(x, weight, bias.defined() ? std::optional<at::Tensor>(bias) : std::nullopt);
  return adapter_ ? adapter_(x, y, is_training()) : y;
}

RmsNorm::RmsNorm(int64_t size, double epsilon)
    : weight(register_parameter("weight", torch::empty({size}))), epsilon_(epsilon) {}

torch::Tensor RmsNorm::forward(const torch::Tensor& x) {
  return rms_norm(x, weight, epsilon_);
}

VocabularyWeight::VocabularyWeight(int64_t vocab_size, int64_t hidden_size)
    : weight(register_parameter("weight", torch::empty({vocab_size, hidden_size}))) {}

}  // namespace coxswain
