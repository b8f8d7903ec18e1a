// The Llama family: RMSNorm before attention and MLP, rotary positions, grouped-query attention, SwiGLU.
#pragma once

#include <memory>

#include "runtime/model/causal_lm.h"
#include "runtime/model/llama_config.h"

namespace coxswain {

std::shared_ptr<CausalLM> make_llama(const LlamaConfig& config);

}  // namespace coxswain
