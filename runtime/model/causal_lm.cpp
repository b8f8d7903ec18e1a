#include "runtime/model/causal_lm.h"

#include "runtime/model/head_loss.h"

namespace coxswain {
namespace {

using torch::Tensor;

Tensor int_tensor(const std::vector<int64_t>& values) {
  return torch::tensor(values, torch::kLong);
}

}  // namespace

TokenBatch to_token_batch(const Batch& batch) {
  std::vector<int64_t> ids, positions, targets;
  TokenBatch out;
  for (int64_t row = 0; row < batch.rows; ++row) {
    int64_t at = row * batch.length;
    for (int64_t length : batch.segments[static_cast<size_t>(row)]) {
      if (length == 0) continue;
      out.segments.push_back(length);
      for (int64_t t = 0; t < length; ++t, ++at) {
        ids.push_back(batch.ids[static_cast<size_t>(at)]);
        positions.push_back(t);
        targets.push_back(t + 1 < length ? batch.labels[static_cast<size_t>(at + 1)] : kIgnoredLabel);
      }
    }
  }
  out.ids = int_tensor(ids);
  out.positions = int_tensor(positions);
  out.targets = int_tensor(targets);
  return out;
}

TokenBatch make_prompt(const std::vector<int64_t>& ids) {
  const auto length = static_cast<int64_t>(ids.size());
  return {int_tensor(ids),
          torch::arange(length, torch::kLong),
          torch::full({length}, kIgnoredLabel, torch::kLong),
          {length}};
}

std::vector<ModelUnit> CausalLM::units() const {
  std::vector<ModelUnit> units;
  units.push_back({"embed", {}});
  for (size_t i = 0; i < block_count(); ++i) units.push_back({"layers." + std::to_string(i), {}});
  units.push_back({"head", {}});

  const auto prefixes = unit_prefixes();
  for (const auto& parameter : named_parameters()) {
    bool placed = false;
    for (size_t unit = 0; unit < prefixes.size() && !placed; ++unit) {
      for (const auto& prefix : prefixes[unit]) {
        if (parameter.key().rfind(prefix, 0) != 0) continue;
        units[unit].parameter_names.push_back(parameter.key());
        placed = true;
        break;
      }
    }
    TORCH_CHECK(placed, "parameter ", parameter.key(), " is in no unit of the model");
  }
  return units;
}

std::vector<size_t> CausalLM::head_units() const {
  return tied() ? std::vector<size_t>{head_unit(), embed_unit()} : std::vector<size_t>{head_unit()};
}

Tensor CausalLM::run_blocks(const TokenBatch& batch, UnitRunner& runner, bool recompute_blocks,
                            KvCache* cache) {
  // Shared with the units' recomputation, which may come after this call.
  auto attention = std::make_shared<AttentionInput>();
  attention->positions = batch.positions;
  attention->segments = batch.segments;
  attention->cache = cache;
  prepare(*attention);
  Tensor x = runner.run({embed_unit()}, batch.ids, false, [this](const Tensor& ids) { return embed(ids); });
  for (size_t i = 0; i < block_count(); ++i) {
    x = runner.run({i + 1}, x, recompute_blocks,
                   [this, i, attention](const Tensor& in) { return block(i, in, *attention); });
  }
  return x;
}

Tensor CausalLM::loss_sum(const TokenBatch& batch, UnitRunner& runner, bool recompute_blocks) {
  Tensor x = run_blocks(batch, runner, recompute_blocks, nullptr);
  const Tensor targets = batch.targets;
  return runner.run(head_units(), x, false, [this, targets](const Tensor& in) {
    const Tensor chosen = (targets != kIgnoredLabel).nonzero().squeeze(1);
    if (chosen.size(0) == targets.size(0)) return head_loss(final_norm(in), head_weight(), targets);
    return head_loss(final_norm(in.index_select(0, chosen)), head_weight(), targets.index_select(0, chosen));
  });
}

Tensor CausalLM::logits(const TokenBatch& batch, UnitRunner& runner, KvCache* cache) {
  const Tensor x = run_blocks(batch, runner, false, cache);
  if (cache != nullptr) cache->length += batch.ids.size(0);
  return runner.run(head_units(), x, false,
                    [this](const Tensor& in) { return at::linear(final_norm(in), head_weight()); });
}

}  // namespace coxswain
