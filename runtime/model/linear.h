// The layers that decoder blocks are made of, with parameters named as HF names them. Parameters are fp32 and
// have no defined values until weights are loaded.
#pragma once

#include <torch/torch.h>

#include <functional>

namespace coxswain {

// y = x·Wᵀ (+ bias), [N, in] → [N, out]. An adapter (LoRA) may be put on it from outside: it registers its
// parameters as children of this module and turns (x, y) into the adapted y.
class Linear : public torch::nn::Module {
 public:
  using Adapter = std::function<torch::Tensor(const torch::Tensor& x, const torch::Tensor& y, bool training)>;

  Linear(int64_t in_features, int64_t out_features, bool with_bias);
  torch::Tensor forward(const torch::Tensor& x);
  void set_adapter(Adapter adapter) { adapter_ = std::move(adapter); }

  torch::Tensor weight;  // [out, in]
  torch::Tensor bias;    // [out], or undefined

 private:
  Adapter adapter_;
};

class RmsNorm : public torch::nn::Module {
 public:
  RmsNorm(int64_t size, double epsilon);
  torch::Tensor forward(const torch::Tensor& x);  // [N, size]

  torch::Tensor weight;

 private:
  double epsilon_;
};

// Only a weight: a token embedding [V, H], or an output head of its own [V, H].
class VocabularyWeight : public torch::nn::Module {
 public:
  VocabularyWeight(int64_t vocab_size, int64_t hidden_size);

  torch::Tensor weight;
};

}  // namespace coxswain
