#include "runtime/parallel/zero3.h"

#include <algorithm>
#include <utility>

#include "runtime/parallel/unit_function.h"

namespace coxswain {

Zero3::Zero3(std::shared_ptr<ProcessGroup> group, const ModelParameters& model)
    : group_(std::move(group)), units_(model.units.size()) {
  std::vector<UnitParameter> parameters = unit_parameters(model);
  equalise(*group_, parameters);
  using Kind = std::pair<bool, torch::ScalarType>;
  std::vector<std::map<Kind, std::vector<UnitParameter>>> kinds(units_.size());
  for (UnitParameter& parameter : parameters) {
    const Kind kind{parameter.trainable(), parameter.tensor.scalar_type()};
    kinds[parameter.unit][kind].push_back(std::move(parameter));
  }
  for (size_t unit = 0; unit < units_.size(); ++unit) {
    for (auto& [kind, members] : kinds[unit]) {
      units_[unit].push_back(std::make_unique<ShardedGroup>(std::move(members), *group_, memory_));
    }
  }
}

Zero3::Groups Zero3::groups_of(const std::vector<size_t>& units) const {
  Groups groups;
  for (const size_t unit : units) {
    for (const auto& group : units_.at(unit)) {
      groups.push_back(group.get());
    }
  }
  return groups;
}

void Zero3::gather(const Groups& wanted) {
  for (const auto& unit : units_) {
    for (const auto& group : unit) {
      if (std::find(wanted.begin(), wanted.end(), group.get()) == wanted.end()) {
        group->release();
      }
    }
  }
  for (ShardedGroup* group : wanted) {
    group->gather();
  }
}

void Zero3::release_all() {
  gather({});
}

torch::Tensor Zero3::run(const std::vector<size_t>& units, const torch::Tensor& x, bool recompute,
                         const UnitForward& forward) {
  const Groups groups = groups_of(units);
  const bool trainable =
      std::any_of(groups.begin(), groups.end(), [](const ShardedGroup* group) { return group->trainable(); });
  UnitHooks hooks;
  hooks.before_compute = [this, groups] { gather(groups); };
  hooks.after_backward = [groups] {
    for (ShardedGroup* group : groups) {
      if (group->trainable()) {
        group->reduce_gradients();
      }
    }
  };
  return run_unit(x, trainable, recompute, forward, std::move(hooks));
}

void Zero3::backward(const torch::Tensor& loss) {
  translate_lost_peer([&] { loss.backward(); });
  if (last_) {
    release_all();  // the optimizer step comes next, and makes what is gathered stale
  }
}

std::vector<TrainableTensor> Zero3::trainable() {
  std::vector<TrainableTensor> tensors;
  for (const auto& unit : units_) {
    for (const auto& group : unit) {
      if (group->trainable()) {
        group->append_trainable(tensors);
      }
    }
  }
  return tensors;
}

void Zero3::zero_grad() {
  release_all();
  for (const auto& unit : units_) {
    for (const auto& group : unit) {
      group->zero_grad();
    }
  }
}

void Zero3::visit_full_parameters(bool trainable_only, const ParameterVisitor& visit) {
  release_all();
  for (const auto& unit : units_) {
    for (const auto& group : unit) {
      if (trainable_only && !group->trainable()) {
        continue;
      }
      group->gather();
      if (rank() == 0) {
        group->visit(visit);
      }
      group->release();
    }
  }
}

std::map<std::string, torch::Tensor> Zero3::full_parameters(bool trainable_only) {
  std::map<std::string, torch::Tensor> whole;
  visit_full_parameters(trainable_only, [&](const std::string& name, const torch::Tensor& tensor) {
    whole.emplace(name, tensor.clone());
  });
  return whole;
}

}  // namespace coxswain
