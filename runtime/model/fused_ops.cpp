#include "runtime/model/fused_ops.h"

#include <ATen/Parallel.h>

#include "runtime/model/row_kernels.h"

namespace coxswain {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Numbers that one thread should at least get.
constexpr int64_t kGrain = 32768;

bool plain_cpu(const Tensor& x) {
  return x.is_cpu() && x.scalar_type() == at::kFloat;
}

template <typename Rows>
void for_rows(int64_t rows, int64_t row_size, const Rows& work) {
  at::parallel_for(0, rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, row_size)), work);
}

Tensor rms_norm_forward(const Tensor& x, const Tensor& weight, float epsilon, Tensor& inverse_rms) {
  const int64_t n = x.size(-1), rows = x.numel() / n;
  Tensor y = torch::empty_like(x);
  inverse_rms = torch::empty({rows}, x.options());
  const float* in = x.const_data_ptr<float>();
  const float* w = weight.const_data_ptr<float>();
  float* out = y.mutable_data_ptr<float>();
  float* r = inverse_rms.mutable_data_ptr<float>();
  for_rows(rows, n, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) r[i] = rms_norm_row(in + i * n, w, n, epsilon, out + i * n);
  });
  return y;
}

// Rows are cut into a fixed number of parts, so that the sum over rows doesn't depend on the number of
// threads.
constexpr int64_t kParts = 16;

variable_list rms_norm_backward(const Tensor& x, const Tensor& weight, const Tensor& inverse_rms,
                                const Tensor& dy, bool want_weight) {
  const int64_t n = x.size(-1), rows = x.numel() / n;
  Tensor dx = torch::empty_like(x);
  Tensor partial = want_weight ? torch::zeros({kParts, n}, x.options()) : Tensor();
  const float* in = x.const_data_ptr<float>();
  const float* w = weight.const_data_ptr<float>();
  const float* g = dy.const_data_ptr<float>();
  const float* r = inverse_rms.const_data_ptr<float>();
  float* out = dx.mutable_data_ptr<float>();
  float* dw = want_weight ? partial.mutable_data_ptr<float>() : nullptr;
  at::parallel_for(0, kParts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      for (int64_t i = rows * part / kParts; i < rows * (part + 1) / kParts; ++i) {
        rms_norm_row_backward(in + i * n, w, g + i * n, r[i], n, out + i * n,
                              dw == nullptr ? nullptr : dw + part * n);
      }
    }
  });
  return {dx, want_weight ? partial.sum(0) : Tensor(), Tensor()};
}

struct RmsNormFunction : torch::autograd::Function<RmsNormFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& weight, double epsilon) {
    Tensor inverse_rms;
    Tensor y = rms_norm_forward(x, weight, static_cast<float>(epsilon), inverse_rms);
    ctx->save_for_backward({x, weight, inverse_rms});
    return y;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    return rms_norm_backward(saved[0], saved[1], saved[2], grads[0].contiguous(), ctx->needs_input_grad(1));
  }
};

struct SiluMulFunction : torch::autograd::Function<SiluMulFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& gate, const Tensor& up) {
    ctx->save_for_backward({gate, up});
    Tensor y = torch::empty_like(gate);
    const float* g = gate.const_data_ptr<float>();
    const float* u = up.const_data_ptr<float>();
    float* out = y.mutable_data_ptr<float>();
    for_rows(gate.numel(), 1, [&](int64_t begin, int64_t end) {
      coxswain::silu_mul(g + begin, u + begin, end - begin, out + begin);
    });
    return y;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const Tensor dy = grads[0].contiguous();
    Tensor dgate = torch::empty_like(saved[0]), dup = torch::empty_like(saved[1]);
    const float* g = saved[0].const_data_ptr<float>();
    const float* u = saved[1].const_data_ptr<float>();
    const float* d = dy.const_data_ptr<float>();
    float* out_gate = dgate.mutable_data_ptr<float>();
    float* out_up = dup.mutable_data_ptr<float>();
    for_rows(dy.numel(), 1, [&](int64_t begin, int64_t end) {
      silu_mul_backward(g + begin, u + begin, d + begin, end - begin, out_gate + begin, out_up + begin);
    });
    return {dgate, dup};
  }
};

Tensor rotate_rows(const Tensor& x, const Tensor& cos, const Tensor& sin,
                   void (*rotate_one)(const float*, const float*, const float*, int64_t, float*)) {
  const int64_t heads = x.size(1), size = x.size(2);
  Tensor y = torch::empty_like(x);
  const float* in = x.const_data_ptr<float>();
  const float* c = cos.const_data_ptr<float>();
  const float* s = sin.const_data_ptr<float>();
  float* out = y.mutable_data_ptr<float>();
  for_rows(x.size(0), heads * size, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * heads; i < end * heads; ++i) {
      const int64_t angle = i / heads * (size / 2);
      rotate_one(in + i * size, c + angle, s + angle, size / 2, out + i * size);
    }
  });
  return y;
}

struct RotateFunction : torch::autograd::Function<RotateFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& cos, const Tensor& sin) {
    ctx->save_for_backward({cos, sin});
    return rotate_rows(x, cos, sin, rotate_head);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    return {rotate_rows(grads[0].contiguous(), saved[0], saved[1], rotate_head_back), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& weight, double epsilon) {
  if (plain_cpu(x) && plain_cpu(weight)) return RmsNormFunction::apply(x.contiguous(), weight, epsilon);
  const Tensor wide = x.to(at::kFloat);
  return weight * (wide * torch::rsqrt(wide.pow(2).mean(-1, true) + epsilon)).to(x.scalar_type());
}

Tensor silu_mul(const Tensor& gate, const Tensor& up) {
  if (plain_cpu(gate) && plain_cpu(up)) return SiluMulFunction::apply(gate.contiguous(), up.contiguous());
  return at::silu(gate) * up;
}

Tensor rotate(const Tensor& x, const Tensor& cos, const Tensor& sin) {
  if (plain_cpu(x)) return RotateFunction::apply(x.contiguous(), cos.contiguous(), sin.contiguous());
  const auto halves = x.chunk(2, -1);
  const Tensor c = cos.unsqueeze(1).to(x.scalar_type()), s = sin.unsqueeze(1).to(x.scalar_type());
  return at::cat({halves[0] * c - halves[1] * s, halves[1] * c + halves[0] * s}, -1);
}

}  // namespace coxswain
