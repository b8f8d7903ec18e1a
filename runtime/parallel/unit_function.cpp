#include "runtime/parallel/unit_function.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/custom_class.h>

#include <utility>

namespace coxswain {
namespace {

struct Segment : torch::CustomClassHolder {
  UnitForward forward;
  UnitHooks hooks;
  bool recompute = false;
  torch::Tensor x;             // detached: where the unit's own graph begins
  torch::Tensor y;             // its end, unless recompute
  torch::Tensor random_state;  // before forward, with recompute

  void compute_before() const {
    if (hooks.before_compute) {
      hooks.before_compute();
    }
  }
};

torch::Tensor random_state() {
  auto generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

void set_random_state(const torch::Tensor& state) {
  auto generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

torch::Tensor compute_again(const Segment& segment) {
  const torch::Tensor now = random_state();
  set_random_state(segment.random_state);
  const at::AutoGradMode record(true);
  torch::Tensor y = segment.forward(segment.x);
  set_random_state(now);
  return y;
}

class UnitFunction : public torch::autograd::Function<UnitFunction> {
 public:
  // `anchor` wants a gradient where only parameters do, so that the node is recorded.
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               const torch::Tensor& /*anchor*/, const c10::intrusive_ptr<Segment>& segment) {
    context->saved_data["segment"] = c10::IValue::make_capsule(segment);
    segment->x = x.detach();
    segment->x.requires_grad_(x.requires_grad());
    segment->compute_before();
    if (segment->recompute) {
      segment->random_state = random_state();
      return segment->forward(segment->x.detach());
    }
    const at::AutoGradMode record(true);
    segment->y = segment->forward(segment->x);
    return segment->y.detach();
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto segment =
        c10::static_intrusive_pointer_cast<Segment>(context->saved_data["segment"].toCapsule());
    TORCH_CHECK(segment->x.defined(), "a unit's graph can be run backward only once");
    segment->compute_before();
    torch::Tensor y = segment->recompute ? compute_again(*segment) : std::exchange(segment->y, {});
    if (gradients[0].defined()) {
      torch::autograd::backward({y}, {gradients[0]});
    }
    y.reset();
    segment->forward = nullptr;
    if (segment->hooks.after_backward) {
      segment->hooks.after_backward();
    }
    const torch::Tensor x = std::exchange(segment->x, {});
    return {x.grad(), torch::Tensor(), torch::Tensor()};
  }
};

}  // namespace

torch::Tensor run_unit(const torch::Tensor& x, bool trainable, bool recompute, UnitForward forward,
                       UnitHooks hooks) {
  if (!at::GradMode::is_enabled() || !(trainable || x.requires_grad())) {
    const torch::NoGradGuard no_grad;
    if (hooks.before_compute) {
      hooks.before_compute();
    }
    return forward(x);
  }
  auto segment = c10::make_intrusive<Segment>();
  segment->forward = std::move(forward);
  segment->hooks = std::move(hooks);
  segment->recompute = recompute;
  const torch::Tensor anchor = torch::empty({0}, torch::dtype(torch::kFloat).requires_grad(trainable));
  return UnitFunction::apply(x, anchor, segment);
}

}  // namespace coxswain
