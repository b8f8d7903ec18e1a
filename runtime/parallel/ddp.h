// Whole parameters on every rank, gradients summed over ranks while backward still runs (c10d::Reducer).
#pragma once

#include <memory>

#include "runtime/parallel/single.h"

namespace c10d {
class Reducer;
}

namespace coxswain {

class Ddp : public Single {
 public:
  Ddp(std::shared_ptr<ProcessGroup> group, const ModelParameters& model);
  ~Ddp() override;

  void begin_micro_batch(bool last) override;
  void backward(const torch::Tensor& loss) override;
  void zero_grad() override;

 private:
  std::unique_ptr<c10d::Reducer> reducer_;
  bool last_ = true;
  int micro_batches_ = 0;  // of the current step
};

}  // namespace coxswain
