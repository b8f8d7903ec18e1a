#include "runtime/parallel/ddp.h"

#include <algorithm>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <vector>

#include "runtime/parallel/c10d_group.h"

namespace coxswain {
namespace {

// PyTorch's own sizes: a small first bucket, so that the first reduction starts early.
constexpr int64_t kFirstBucketBytes = 1 << 20;
constexpr int64_t kBucketBytes = 25 << 20;

// The Reducer's default divides by the number of ranks; we want the sum.
class SumHook : public c10d::CppCommHookInterface<c10::intrusive_ptr<c10d::ProcessGroup>> {
 public:
  using CppCommHookInterface::CppCommHookInterface;
  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    std::vector<at::Tensor> tensors{bucket.getBufferRef()};
    return state_->allreduce(tensors)->getFuture();
  }
};

}  // namespace

Ddp::Ddp(std::shared_ptr<ProcessGroup> group, const ModelParameters& model)
    : Single(std::move(group), model) {
  equalise(*group_, parameters_);
  std::vector<at::Tensor> trainable;
  for (const UnitParameter& parameter : parameters_) {
    if (parameter.trainable()) {
      trainable.push_back(parameter.tensor);
    }
  }
  if (trainable.empty()) {
    return;
  }
  const std::vector<bool> dense(trainable.size(), false);
  auto [buckets, limits] =
      c10d::compute_bucket_assignment_by_size(trainable, {kFirstBucketBytes, kBucketBytes}, dense);
  std::reverse(buckets.begin(), buckets.end());  // backward reaches the last parameters first
  reducer_ = std::make_unique<c10d::Reducer>(
      trainable, std::move(buckets), group_->c10d()->group, dense, kBucketBytes,
      /*find_unused_parameters=*/false, /*gradient_as_bucket_view=*/true,
      std::unordered_map<size_t, std::string>{}, kFirstBucketBytes, /*skip_all_reduce_unused_params=*/false,
      /*use_python_reducer=*/false, std::vector<int64_t>{});
  reducer_->register_comm_hook(std::make_unique<SumHook>(group_->c10d()->group));
}

Ddp::~Ddp() = default;

void Ddp::begin_micro_batch(bool last) {
  last_ = last;
  ++micro_batches_;
  if (!reducer_) {
    return;
  }
  translate_lost_peer([&] {
    reducer_->rebuild_buckets();
    if (last) {
      reducer_->prepare_for_forward();
    }
  });
}

void Ddp::backward(const torch::Tensor& loss) {
  translate_lost_peer([&] {
    if (last_ && reducer_) {
      reducer_->prepare_for_backward({loss});
    }
    Single::backward(loss);
  });
}

// After one micro-batch gradients are dropped: the Reducer then copies each new one into its bucket. After
// several they stay bucket views, so that accumulating adds to the buckets instead of holding gradients
// twice.
void Ddp::zero_grad() {
  const bool keep_views = micro_batches_ > 1;
  micro_batches_ = 0;
  if (!keep_views) {
    Single::zero_grad();
    return;
  }
  const torch::NoGradGuard no_grad;
  for (UnitParameter& parameter : parameters_) {
    if (torch::Tensor& gradient = parameter.tensor.mutable_grad(); gradient.defined()) {
      gradient.zero_();
    }
  }
}

}  // namespace coxswain
