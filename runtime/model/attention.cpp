#include "runtime/model/attention.h"

#include <algorithm>
#include <numbers>

namespace coxswain {
namespace {

using torch::Tensor;

// [S, T, heads, D] → [S·T, heads·D]
Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, bool causal) {
  const Tensor out =
      at::scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), {},
                                       /*dropout_p=*/0.0, causal, std::nullopt,
                                       /*enable_gqa=*/q.size(2) != k.size(2));
  return out.transpose(1, 2).reshape({q.size(0) * q.size(1), q.size(2) * q.size(3)});
}

Tensor attend_with_cache(const Tensor& q, const Tensor& k, const Tensor& v, KvCache& cache, size_t layer) {
  if (cache.layers.size() <= layer) cache.layers.resize(layer + 1);
  auto& [keys, values] = cache.layers[layer];
  const bool first = !keys.defined();
  TORCH_CHECK(first || q.size(0) == 1, "a filled cache takes one token at a time");
  keys = first ? k.unsqueeze(0) : at::cat({keys, k.unsqueeze(0)}, 1);
  values = first ? v.unsqueeze(0) : at::cat({values, v.unsqueeze(0)}, 1);
  return attend(q.unsqueeze(0), keys, values, /*causal=*/first);
}

}  // namespace

Tensor rope_inverse_frequencies(const RopeConfig& rope, int64_t head_size) {
  const auto options = torch::TensorOptions().dtype(at::kFloat);
  const Tensor exponents = torch::arange(0, head_size, 2, options) / static_cast<double>(head_size);
  const Tensor plain = 1.0 / at::pow(rope.theta, exponents);
  if (!rope.llama3) return plain;
  // Turns within the original context decide: many keep their frequency, few are stretched, between them a
  // blend.
  const double longest = rope.original_max_positions / rope.low_freq_factor;
  const double shortest = rope.original_max_positions / rope.high_freq_factor;
  const Tensor wavelength = 2.0 * std::numbers::pi / plain;
  const Tensor blend = (rope.original_max_positions / wavelength - rope.low_freq_factor) /
                       (rope.high_freq_factor - rope.low_freq_factor);
  const Tensor blended = (1.0 - blend) * plain / rope.factor + blend * plain;
  return at::where(wavelength > longest, plain / rope.factor,
                   at::where(wavelength < shortest, plain, blended));
}

void fill_rotary_tables(AttentionInput& attention, const Tensor& inverse_frequencies) {
  const Tensor angles = attention.positions.to(at::kFloat).unsqueeze(1) * inverse_frequencies.unsqueeze(0);
  attention.rotary_cos = angles.cos();
  attention.rotary_sin = angles.sin();
}

Tensor causal_attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionInput& attention,
                        size_t layer) {
  if (attention.cache != nullptr) return attend_with_cache(q, k, v, *attention.cache, layer);
  const auto& segments = attention.segments;
  if (std::adjacent_find(segments.begin(), segments.end(), std::not_equal_to<>()) == segments.end()) {
    const auto stacked = [&](const Tensor& x) {
      return x.view({-1, segments.front(), x.size(1), x.size(2)});
    };
    return attend(stacked(q), stacked(k), stacked(v), /*causal=*/true);
  }
  // Each by itself: no mask, and no work for pairs that a mask would hide.
  const auto qs = q.split_with_sizes(segments), ks = k.split_with_sizes(segments),
             vs = v.split_with_sizes(segments);
  std::vector<Tensor> out;
  for (size_t i = 0; i < segments.size(); ++i) {
    out.push_back(attend(qs[i].unsqueeze(0), ks[i].unsqueeze(0), vs[i].unsqueeze(0), /*causal=*/true));
  }
  return at::cat(out);
}

}  // namespace coxswain
