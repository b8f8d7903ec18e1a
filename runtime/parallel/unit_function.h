// A unit as one node of autograd's graph.
//
// The node's backward runs the unit's own backward, nested: all gradients of the unit's parameters have
// accumulated when it returns. That makes one place for what happens around a unit in backward, for units
// that keep their activations and for units that are computed again alike.
#pragma once

#include <torch/torch.h>

#include <functional>

#include "runtime/model/unit_runner.h"

namespace coxswain {

struct UnitHooks {
  std::function<void()> before_compute;  // before forward, and again before backward
  std::function<void()> after_backward;
};

// forward(x) as one node. `trainable`: the unit has parameters that want gradients; where neither they nor x
// do, nothing is recorded. With `recompute` only x is kept, and the random numbers that were drawn are drawn
// again. The graph can be run backward once.
torch::Tensor run_unit(const torch::Tensor& x, bool trainable, bool recompute, UnitForward forward,
                       UnitHooks hooks);

}  // namespace coxswain
