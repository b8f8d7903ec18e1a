#include "runtime/model/llama.h"

#include "runtime/model/attention.h"
#include "runtime/model/fused_ops.h"
#include "runtime/model/linear.h"

namespace coxswain {
namespace {

using torch::Tensor;

class LlamaAttention : public torch::nn::Module {
 public:
  explicit LlamaAttention(const LlamaConfig& c)
      : head_size_(c.head_size),
        q_(add("q_proj", c.hidden_size, c.heads * c.head_size, c.attention_bias)),
        k_(add("k_proj", c.hidden_size, c.kv_heads * c.head_size, c.attention_bias)),
        v_(add("v_proj", c.hidden_size, c.kv_heads * c.head_size, c.attention_bias)),
        o_(add("o_proj", c.heads * c.head_size, c.hidden_size, c.attention_bias)) {}

  Tensor forward(const Tensor& x, const AttentionInput& attention, size_t layer) {
    const auto heads = [&](const Tensor& y) { return y.view({y.size(0), -1, head_size_}); };
    const Tensor q = rotate(heads(q_->forward(x)), attention.rotary_cos, attention.rotary_sin);
    const Tensor k = rotate(heads(k_->forward(x)), attention.rotary_cos, attention.rotary_sin);
    return o_->forward(causal_attention(q, k, heads(v_->forward(x)), attention, layer));
  }

 private:
  std::shared_ptr<Linear> add(const char* name, int64_t in, int64_t out, bool bias) {
    return register_module(name, std::make_shared<Linear>(in, out, bias));
  }

  int64_t head_size_;
  std::shared_ptr<Linear> q_, k_, v_, o_;
};

class LlamaMlp : public torch::nn::Module {
 public:
  explicit LlamaMlp(const LlamaConfig& c)
      : gate_(add("gate_proj", c.hidden_size, c.intermediate_size, c.mlp_bias)),
        up_(add("up_proj", c.hidden_size, c.intermediate_size, c.mlp_bias)),
        down_(add("down_proj", c.intermediate_size, c.hidden_size, c.mlp_bias)) {}

  Tensor forward(const Tensor& x) { return down_->forward(silu_mul(gate_->forward(x), up_->forward(x))); }

 private:
  std::shared_ptr<Linear> add(const char* name, int64_t in, int64_t out, bool bias) {
    return register_module(name, std::make_shared<Linear>(in, out, bias));
  }

  std::shared_ptr<Linear> gate_, up_, down_;
};

class LlamaBlock : public torch::nn::Module {
 public:
  explicit LlamaBlock(const LlamaConfig& c)
      : attention_(register_module("self_attn", std::make_shared<LlamaAttention>(c))),
        mlp_(register_module("mlp", std::make_shared<LlamaMlp>(c))),
        attention_norm_(
            register_module("input_layernorm", std::make_shared<RmsNorm>(c.hidden_size, c.rms_norm_eps))),
        mlp_norm_(register_module("post_attention_layernorm",
                                  std::make_shared<RmsNorm>(c.hidden_size, c.rms_norm_eps))) {}

  Tensor forward(const Tensor& x, const AttentionInput& attention, size_t layer) {
    const Tensor after_attention = x + attention_->forward(attention_norm_->forward(x), attention, layer);
    return after_attention + mlp_->forward(mlp_norm_->forward(after_attention));
  }

 private:
  std::shared_ptr<LlamaAttention> attention_;
  std::shared_ptr<LlamaMlp> mlp_;
  std::shared_ptr<RmsNorm> attention_norm_, mlp_norm_;
};

// What HF calls `model`.
class LlamaTrunk : public torch::nn::Module {
 public:
  explicit LlamaTrunk(const LlamaConfig& c)
      : embed_tokens(
            register_module("embed_tokens", std::make_shared<VocabularyWeight>(c.vocab_size, c.hidden_size))),
        layers(register_module("layers", torch::nn::ModuleList())),
        norm(register_module("norm", std::make_shared<RmsNorm>(c.hidden_size, c.rms_norm_eps))) {
    for (int64_t i = 0; i < c.layers; ++i) layers->push_back(std::make_shared<LlamaBlock>(c));
  }

  std::shared_ptr<VocabularyWeight> embed_tokens;
  torch::nn::ModuleList layers;
  std::shared_ptr<RmsNorm> norm;
};

class Llama : public CausalLM {
 public:
  explicit Llama(const LlamaConfig& config)
      : config_(config),
        inverse_frequencies_(rope_inverse_frequencies(config.rope, config.head_size)),
        trunk_(register_module("model", std::make_shared<LlamaTrunk>(config))) {
    if (config.tied) return;
    lm_head_ =
        register_module("lm_head", std::make_shared<VocabularyWeight>(config.vocab_size, config.hidden_size));
  }

  size_t block_count() const override { return static_cast<size_t>(config_.layers); }
  int64_t vocab_size() const override { return config_.vocab_size; }
  int64_t max_positions() const override { return config_.max_positions; }
  bool tied() const override { return config_.tied; }

 protected:
  std::vector<std::vector<std::string>> unit_prefixes() const override {
    std::vector<std::vector<std::string>> prefixes = {{"model.embed_tokens."}};
    for (size_t i = 0; i < block_count(); ++i)
      prefixes.push_back({"model.layers." + std::to_string(i) + "."});
    prefixes.push_back({"model.norm.", "lm_head."});
    return prefixes;
  }

  Tensor embed(const Tensor& ids) override { return at::embedding(trunk_->embed_tokens->weight, ids); }
  void prepare(AttentionInput& attention) override { fill_rotary_tables(attention, inverse_frequencies_); }
  Tensor block(size_t index, const Tensor& x, const AttentionInput& attention) override {
    return trunk_->layers->at<LlamaBlock>(index).forward(x, attention, index);
  }
  Tensor final_norm(const Tensor& x) override { return trunk_->norm->forward(x); }
  Tensor head_weight() override { return lm_head_ ? lm_head_->weight : trunk_->embed_tokens->weight; }

 private:
  LlamaConfig config_;
  Tensor inverse_frequencies_;
  std::shared_ptr<LlamaTrunk> trunk_;
  std::shared_ptr<VocabularyWeight> lm_head_;
};

}  // namespace

std::shared_ptr<CausalLM> make_llama(const LlamaConfig& config) {
  return std::make_shared<Llama>(config);
}

}  // namespace coxswain
