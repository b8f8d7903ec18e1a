// The c10d objects behind ProcessGroup, for the sources that hand them to c10d.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace coxswain {

struct C10dGroup {
  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<c10d::Backend> gloo;
  c10::intrusive_ptr<c10d::ProcessGroup> group;  // dispatches to gloo; what c10d::Reducer wants
};

}  // namespace coxswain
