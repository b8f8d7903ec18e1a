#include "runtime/model/generate.h"

#include <algorithm>

namespace coxswain {

std::vector<int64_t> generate_greedy(CausalLM& model, const std::vector<int64_t>& ids, int64_t max_new_tokens,
                                     const std::vector<int64_t>& eos_ids) {
  const torch::NoGradGuard no_grad;
  const bool was_training = model.is_training();
  model.eval();
  DirectRunner runner;
  KvCache cache;
  std::vector<int64_t> answer;
  TokenBatch batch = make_prompt(ids);
  const int64_t room = model.max_positions() - static_cast<int64_t>(ids.size());
  while (static_cast<int64_t>(answer.size()) < std::min(max_new_tokens, room)) {
    const torch::Tensor logits = model.logits(batch, runner, &cache);
    answer.push_back(logits[-1].argmax().item<int64_t>());
    if (std::find(eos_ids.begin(), eos_ids.end(), answer.back()) != eos_ids.end()) break;
    batch = make_prompt({answer.back()});
    batch.positions.fill_(cache.length);
  }
  model.train(was_training);
  return answer;
}

}  // namespace coxswain
