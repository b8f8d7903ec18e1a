// The seam between a model and how it is trained in parallel.
//
// A model is a sequence of *units* – embedding, each block, the head – and names the parameters of each. It
// runs every unit through a UnitRunner, which may gather the unit's parameters before, free them after,
// recompute the unit in backward, or just call it. LibTorch modules have no forward hooks; this is the one
// place that stands in for them.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace coxswain {

// Parameters that are needed at the same time. A parameter that two units use (tied embeddings) is listed by
// the first only; the other names the first unit when it runs.
struct ModelUnit {
  std::string name;  // "embed", "layers.0", …, "head"
  std::vector<std::string>
      parameter_names;  // fully qualified, HF names: "model.layers.0.self_attn.q_proj.weight"
};

using UnitForward = std::function<torch::Tensor(const torch::Tensor&)>;

class UnitRunner {
 public:
  virtual ~UnitRunner() = default;
  // Returns forward(x), with the parameters of `units` (indices into the model's units()) usable inside the
  // call and again whenever its backward runs. `recompute`: nothing inside is kept for backward; it is run
  // again then (where `units` is one unit that no other run names; else kept). `forward` outlives the call,
  // and differentiates through nothing but x and parameters of `units`.
  virtual torch::Tensor run(const std::vector<size_t>& units, const torch::Tensor& x, bool recompute,
                            const UnitForward& forward) = 0;
};

}  // namespace coxswain
