// The global gradient norm, and clipping by it.
#pragma once

#include <vector>

#include "runtime/parallel/parallel_strategy.h"

namespace coxswain {

// The 2-norm over all trainable parameters of all ranks (accumulated in double), before clipping. Where
// max_norm > 0 and the norm is larger, gradients are scaled in place by max_norm / (norm + 1e-6), as torch's
// clip_grad_norm_. Every rank calls it and gets the same. A norm that isn't finite is returned as it is;
// nothing is scaled then.
double clip_by_global_norm(ParallelStrategy& strategy, const std::vector<TrainableTensor>& tensors,
                           double max_norm);

}  // namespace coxswain
