// What a causal language model offers to training and to generation. An architecture is one file that derives
// from CausalLM (see llama.h) and one line in registry.cpp.
//
// Tokens are flat: a batch is the concatenation of its samples without padding, and all but attention works
// token by token. Shapes: N tokens of all samples, H hidden size, V vocabulary, D head size. A model knows
// nothing of ranks, precision or LoRA; those are applied from outside (unit_runner.h, lora.h). Not
// thread-safe.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/data/batch.h"
#include "runtime/model/unit_runner.h"

namespace coxswain {

// A batch as the model takes it: every segment of every row one after the other, padding left out.
struct TokenBatch {
  torch::Tensor ids;        // int64 [N]
  torch::Tensor positions;  // int64 [N], 0, 1, … in each segment
  torch::Tensor targets;  // int64 [N]: the id that place n has to predict, or kIgnoredLabel; already shifted
  std::vector<int64_t> segments;  // lengths, all > 0; their sum is N
};

TokenBatch to_token_batch(const Batch& batch);
// One sample without targets, for logits().
TokenBatch make_prompt(const std::vector<int64_t>& ids);

// Keys and values of one sequence that is being generated; filled by the model.
struct KvCache {
  int64_t length = 0;                                           // positions held
  std::vector<std::pair<torch::Tensor, torch::Tensor>> layers;  // each [1, KV heads, length, D]
};

// What the attention of a block needs besides its input.
struct AttentionInput {
  torch::Tensor positions;               // int64 [N]
  std::vector<int64_t> segments;         // attention is causal in each and never crosses one
  torch::Tensor rotary_cos, rotary_sin;  // filled by the model's prepare()
  KvCache* cache = nullptr;  // with it: one segment, whose first cache->length positions are in the cache
};

class CausalLM : public torch::nn::Module {
 public:
  // "embed", "layers.0", …, "head", with the parameters that the model has now (adapters included). Every
  // parameter is in exactly one unit.
  std::vector<ModelUnit> units() const;
  size_t embed_unit() const { return 0; }
  size_t head_unit() const { return block_count() + 1; }

  // The sum of the cross-entropies (natural logarithm) of all targets, a float scalar; 0 and with zero
  // gradients when there is no target. Memory for logits is bounded (head_loss.h). `recompute_blocks`:
  // gradient checkpointing of each block.
  torch::Tensor loss_sum(const TokenBatch& batch, UnitRunner& runner, bool recompute_blocks);

  // Logits [N, V] of all places, differentiable; with a cache, of the places that were given.
  torch::Tensor logits(const TokenBatch& batch, UnitRunner& runner, KvCache* cache = nullptr);

  virtual size_t block_count() const = 0;
  virtual int64_t vocab_size() const = 0;
  virtual int64_t max_positions() const = 0;  // config.json's max_position_embeddings
  virtual bool tied() const = 0;              // the head uses the embedding's weight

 protected:
  // Prefixes of the HF parameter names of each unit, in the order of units().
  virtual std::vector<std::vector<std::string>> unit_prefixes() const = 0;
  virtual torch::Tensor embed(const torch::Tensor& ids) = 0;  // [N] → [N, H]
  // Called once before the blocks of a forward, outside any unit: uses no parameter (rotary tables).
  virtual void prepare(AttentionInput& attention) = 0;
  virtual torch::Tensor block(size_t index, const torch::Tensor& x, const AttentionInput& attention) = 0;
  virtual torch::Tensor final_norm(const torch::Tensor& x) = 0;  // [N, H] → [N, H]
  virtual torch::Tensor head_weight() = 0;                       // [V, H]

 private:
  torch::Tensor run_blocks(const TokenBatch& batch, UnitRunner& runner, bool recompute_blocks,
                           KvCache* cache);
  std::vector<size_t> head_units() const;
};

// Calls each unit as it is.
class DirectRunner : public UnitRunner {
 public:
  torch::Tensor run(const std::vector<size_t>&, const torch::Tensor& x, bool,
                    const UnitForward& forward) override {
    return forward(x);
  }
};

}  // namespace coxswain
