#include "runtime/parallel/sharded_group.h"

#include <c10/core/CPUAllocator.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>

namespace coxswain {
namespace {

int64_t bytes_of(const torch::Tensor& tensor) {
  return tensor.numel() * tensor.element_size();
}

// See Note [Storage, not handles].
void give_memory(const torch::Tensor& tensor) {
  const size_t bytes = tensor.numel() * tensor.element_size();
  c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  storage->set_data_ptr_noswap(c10::GetCPUAllocator()->allocate(bytes));
  storage->set_nbytes(bytes);
}

void take_memory(const torch::Tensor& tensor) {
  c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  storage->set_data_ptr_noswap(c10::DataPtr(nullptr, c10::Device(c10::DeviceType::CPU)));
  storage->set_nbytes(0);
}

ShardLayout layout_of(const std::vector<UnitParameter>& parameters, int world_size) {
  std::vector<int64_t> sizes;
  for (const UnitParameter& parameter : parameters) {
    sizes.push_back(parameter.tensor.numel());
  }
  return shard_layout(sizes, world_size);
}

}  // namespace

// Moves a gradient into the group's flat one as soon as it is there, so that at most one parameter's is held
// twice.
class ShardedGroup::GradientHook : public torch::autograd::PostAccumulateGradHook {
 public:
  GradientHook(ShardedGroup& group, size_t index) : group_(group), index_(index) {}
  void operator()(const torch::autograd::Variable&) override { group_.take_gradient(index_); }

 private:
  ShardedGroup& group_;
  size_t index_;
};

ShardedGroup::ShardedGroup(std::vector<UnitParameter> parameters, ProcessGroup& group, MemoryCounter& memory)
    : parameters_(std::move(parameters)),
      group_(group),
      memory_(memory),
      layout_(layout_of(parameters_, group.world_size())),
      received_(parameters_.size(), false) {
  const torch::NoGradGuard no_grad;
  const auto options = parameters_.front().tensor.detach().options();
  shard_ = torch::zeros({layout_.shard_size}, options);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (const auto slice = parameter_slice(layout_, i, group_.rank())) {
      const int64_t size = slice->in_parameter.size();
      shard_.narrow(0, slice->in_shard, size)
          .copy_(parameters_[i].tensor.detach().reshape({-1}).narrow(0, slice->in_parameter.begin, size));
    }
  }
  memory_.add_parameters(bytes_of(shard_));
  take_over_parameters();
}

ShardedGroup::~ShardedGroup() {
  for (UnitParameter& parameter : parameters_) {
    if (parameter.trainable()) {
      torch::autograd::impl::set_post_acc_grad_hooks(parameter.tensor, nullptr);
    }
  }
}

void ShardedGroup::take_over_parameters() {
  whole_ = torch::empty({layout_.padded_size()}, shard_.options());
  for (size_t i = 0; i < parameters_.size(); ++i) {
    torch::Tensor& parameter = parameters_[i].tensor;
    parameter.set_data(part(whole_, i).view(parameter.sizes()));
    if (parameters_[i].trainable()) {
      torch::autograd::impl::set_post_acc_grad_hooks(parameter, std::make_unique<GradientHook>(*this, i));
    }
  }
  take_memory(whole_);  // last: views of a tensor without memory are refused
}

torch::Tensor ShardedGroup::part(const torch::Tensor& flat, size_t index) const {
  const ElementRange& range = layout_.parameters[index];
  return flat.narrow(0, range.begin, range.size());
}

void ShardedGroup::gather() {
  if (gathered_) {
    return;
  }
  const torch::NoGradGuard no_grad;
  give_memory(whole_);
  gathered_ = true;
  memory_.add_parameters(bytes_of(whole_));
  group_.all_gather(shard_, whole_);
}

void ShardedGroup::release() {
  if (!gathered_) {
    return;
  }
  take_memory(whole_);
  gathered_ = false;
  memory_.add_parameters(-bytes_of(whole_));
}

void ShardedGroup::take_gradient(size_t index) {
  const torch::NoGradGuard no_grad;
  if (!whole_gradient_.defined()) {
    whole_gradient_ = torch::empty({layout_.padded_size()}, shard_.options());
    memory_.add_gradients(bytes_of(whole_gradient_));
  }
  torch::Tensor& gradient = parameters_[index].tensor.mutable_grad();
  torch::Tensor place = part(whole_gradient_, index).view(gradient.sizes());
  if (received_[index]) {
    place.add_(gradient);
  } else {
    place.copy_(gradient);
    received_[index] = true;
  }
  gradient.reset();
}

void ShardedGroup::reduce_gradients() {
  const torch::NoGradGuard no_grad;
  if (!whole_gradient_.defined()) {
    whole_gradient_ = torch::empty({layout_.padded_size()}, shard_.options());
    memory_.add_gradients(bytes_of(whole_gradient_));
  }
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!received_[i]) {
      part(whole_gradient_, i).zero_();
    }
    received_[i] = false;
  }
  group_.reduce_scatter_sum(whole_gradient_);
  if (!gradient_shard_.defined()) {
    gradient_shard_ = torch::zeros({layout_.shard_size}, shard_.options());
    memory_.add_gradients(bytes_of(gradient_shard_));
  }
  const torch::Tensor sum = whole_gradient_.narrow(0, group_.rank() * layout_.shard_size, layout_.shard_size);
  if (has_gradient_) {
    gradient_shard_.add_(sum);
  } else {
    gradient_shard_.copy_(sum);
    has_gradient_ = true;
  }
  memory_.add_gradients(-bytes_of(whole_gradient_));
  whole_gradient_.reset();
}

void ShardedGroup::append_trainable(std::vector<TrainableTensor>& tensors) {
  if (!gradient_shard_.defined()) {
    gradient_shard_ = torch::zeros({layout_.shard_size}, shard_.options());
    memory_.add_gradients(bytes_of(gradient_shard_));
  } else if (!has_gradient_) {
    gradient_shard_.zero_();
  }
  has_gradient_ = true;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (const auto slice = parameter_slice(layout_, i, group_.rank())) {
      const int64_t size = slice->in_parameter.size();
      tensors.push_back({parameters_[i].name, shard_.narrow(0, slice->in_shard, size),
                         gradient_shard_.narrow(0, slice->in_shard, size), parameters_[i].decay,
                         slice->in_parameter.begin, parameters_[i].tensor.sizes().vec()});
    }
  }
}

void ShardedGroup::visit(const ParameterVisitor& visit) const {
  for (const UnitParameter& parameter : parameters_) {
    visit(parameter.name, parameter.tensor.detach());
  }
}

}  // namespace coxswain
