// LoRA by PEFT's rules, applied to a model from outside.
//
// An adapted linear computes base(x) + alpha/r · B(A(dropout(x))). Its parameters become
// <module>.lora_A.weight [r, in] and <module>.lora_B.weight [out, r] beside the base's own, which keep their
// names and are frozen.
#pragma once

#include <string>
#include <vector>

#include "contract/result.h"
#include "runtime/config/train_config.h"
#include "runtime/model/causal_lm.h"
#include "runtime/model/safetensors.h"

namespace coxswain {

// Freezes every parameter of the model and adapts the linears that config.target_modules selects:
// {"all-linear"} is every linear but the output head; else every linear whose name is one of these or ends
// with ".<one of these>". A is drawn as PEFT's default (Kaiming uniform, a = √5) from a generator of its own
// with `seed`, the same on every rank; B is zero. kBadInput when an entry matches nothing (the message lists
// the suffixes there are) or the rank is not positive.
Result<void> apply_lora(CausalLM& model, const LoraConfig& config, uint64_t seed);

// Whether `name` is a parameter that apply_lora made.
bool is_lora_parameter(const std::string& name);

// Writes adapter_config.json and adapter_model.safetensors as peft does. `parameters` may hold more than the
// adapter; what is not LoRA's is left out. base_model: what adapter_config.json says of
// base_model_name_or_path.
Result<void> save_adapter(const std::string& folder, const LoraConfig& config, const std::string& base_model,
                          const TensorMap& parameters);

// Copies the adapter of a folder into a model that apply_lora prepared alike.
Result<void> load_adapter(CausalLM& model, const std::string& folder);

// Turns the parameters of an adapted model into those of a plain one, in place: W += alpha/r · B·A in fp32,
// LoRA's own names removed. The tensors of adapted weights are replaced, not written to.
Result<void> merge_lora(TensorMap& parameters, const LoraConfig& config);

}  // namespace coxswain
