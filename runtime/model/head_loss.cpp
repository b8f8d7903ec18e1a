#include "runtime/model/head_loss.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "runtime/data/batch.h"
#include "runtime/model/row_kernels.h"

namespace coxswain {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kLogitBytes = 64 << 20;
// Fewer rows would read the whole weight too often for their work.
constexpr int64_t kFewestRows = 128;

int64_t rows_of_chunk(int64_t vocab_size) {
  return std::max(kFewestRows, kLogitBytes / static_cast<int64_t>(sizeof(float)) / vocab_size);
}

// Logits become their gradient; returns the sum of the losses.
double cross_entropy_in_place(Tensor& logits, const Tensor& targets) {
  const int64_t rows = logits.size(0), vocab_size = logits.size(1);
  if (!logits.is_cpu()) {
    const Tensor log_probabilities = at::log_softmax(logits, 1);
    const Tensor column = targets.unsqueeze(1);
    logits.copy_(log_probabilities).exp_();
    logits.scatter_add_(1, column, torch::full(column.sizes(), -1.0, logits.options()));
    return -log_probabilities.gather(1, column).sum().item<double>();
  }
  std::vector<double> losses(static_cast<size_t>(rows));
  float* data = logits.mutable_data_ptr<float>();
  const int64_t* target = targets.const_data_ptr<int64_t>();
  at::parallel_for(0, rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      losses[static_cast<size_t>(i)] = cross_entropy_row(data + i * vocab_size, vocab_size, target[i]);
    }
  });
  double sum = 0;
  for (double loss : losses) sum += loss;
  return sum;
}

struct HeadLossFunction : torch::autograd::Function<HeadLossFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& hidden, const Tensor& weight,
                        const Tensor& targets, bool want_hidden, bool want_weight) {
    const Tensor h = hidden.to(at::kFloat).contiguous();
    const Tensor w = weight.to(at::kFloat);
    const int64_t rows = h.size(0), chunk = std::min(std::max<int64_t>(1, rows), rows_of_chunk(w.size(0)));
    Tensor buffer = torch::empty({chunk, w.size(0)}, h.options());
    Tensor dhidden = want_hidden ? torch::empty_like(h) : Tensor();
    Tensor dweight;
    double sum = 0;
    for (int64_t begin = 0; begin < rows; begin += chunk) {
      const int64_t count = std::min(chunk, rows - begin);
      const Tensor part = h.narrow(0, begin, count);
      Tensor logits = buffer.narrow(0, 0, count);
      at::mm_out(logits, part, w.t());
      sum += cross_entropy_in_place(logits, targets.narrow(0, begin, count));
      if (want_hidden) {
        Tensor out = dhidden.narrow(0, begin, count);
        at::mm_out(out, logits, w);
      }
      if (!want_weight) continue;
      if (dweight.defined()) {
        dweight.addmm_(logits.t(), part);
      } else {
        dweight = at::mm(logits.t(), part);
      }
    }
    if (want_weight && !dweight.defined()) dweight = torch::zeros_like(w);
    ctx->saved_data["hidden"] = dhidden;
    ctx->saved_data["weight"] = dweight;
    return torch::full({}, sum, h.options());
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto scaled = [&](const char* name) {
      auto found = ctx->saved_data.find(name);
      TORCH_CHECK(found != ctx->saved_data.end(), "head_loss: backward may run once");
      Tensor gradient = found->second.toTensor();
      // Nobody else holds it any more, so that it can become .grad without a copy.
      ctx->saved_data.erase(found);
      return gradient.defined() ? gradient.mul_(grads[0]) : gradient;
    };
    Tensor dhidden = scaled("hidden");
    Tensor dweight = scaled("weight");
    return {dhidden, dweight, Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor head_loss(const Tensor& hidden, const Tensor& weight, const Tensor& targets) {
  const Tensor chosen = (targets != kIgnoredLabel).nonzero().squeeze(1);
  const bool all = chosen.size(0) == targets.size(0);
  const Tensor h = all ? hidden : hidden.index_select(0, chosen);
  const Tensor t = all ? targets : targets.index_select(0, chosen);
  if (t.numel() > 0) {
    TORCH_CHECK(t.min().item<int64_t>() >= 0 && t.max().item<int64_t>() < weight.size(0),
                "a target token id is outside the vocabulary of ", weight.size(0));
  }
  const bool grad = torch::GradMode::is_enabled();
  return HeadLossFunction::apply(h, weight, t.contiguous(), grad && h.requires_grad(),
                                 grad && weight.requires_grad());
}

}  // namespace coxswain
