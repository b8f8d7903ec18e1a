#include "runtime/parallel/parameters.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <stdexcept>

#include "runtime/optim/weight_decay.h"

namespace coxswain {
namespace {

constexpr int64_t kChecksumGrain = 1 << 18;  // bytes of one task

// Sum of the tensor's 64-bit words: order doesn't matter, so that threads may share the work.
int64_t checksum(const torch::Tensor& tensor) {
  const torch::Tensor whole = tensor.detach().contiguous();
  const auto* bytes = static_cast<const char*>(whole.const_data_ptr());
  const auto sum_words = [bytes](int64_t begin, int64_t end, uint64_t sum) {
    for (int64_t at = begin; at < end; at += 8) {
      uint64_t word = 0;
      std::memcpy(&word, bytes + at, std::min<int64_t>(8, end - at));
      sum += word;
    }
    return sum;
  };
  const auto size = static_cast<int64_t>(whole.nbytes());
  const int64_t aligned = size / 8 * 8;
  const uint64_t sum = at::parallel_reduce(
      0, aligned / 8, kChecksumGrain / 8, uint64_t{0},
      [&](int64_t begin, int64_t end, uint64_t start) { return sum_words(begin * 8, end * 8, start); },
      [](uint64_t a, uint64_t b) { return a + b; });
  return static_cast<int64_t>(sum_words(aligned, size, sum));
}

}  // namespace

std::vector<UnitParameter> unit_parameters(const ModelParameters& model) {
  std::map<std::string, torch::Tensor> left(model.parameters.begin(), model.parameters.end());
  std::vector<UnitParameter> parameters;
  for (size_t unit = 0; unit < model.units.size(); ++unit) {
    for (const std::string& name : model.units[unit].parameter_names) {
      const auto found = left.find(name);
      if (found == left.end()) {
        throw std::invalid_argument("unit " + model.units[unit].name + " names parameter " + name +
                                    ", which the model doesn't have or another unit names");
      }
      parameters.push_back({name, found->second, weight_decay_applies(name), unit});
      left.erase(found);
    }
  }
  if (!left.empty()) {
    throw std::invalid_argument("parameter " + left.begin()->first + " is in no unit of the model");
  }
  return parameters;
}

void equalise(ProcessGroup& group, std::vector<UnitParameter>& parameters) {
  if (group.world_size() == 1 || parameters.empty()) {
    return;
  }
  const auto count = static_cast<int64_t>(parameters.size());
  torch::Tensor sums = torch::empty({count}, torch::kInt64);
  for (int64_t i = 0; i < count; ++i) {
    sums[i] = checksum(parameters[i].tensor);
  }
  torch::Tensor all = torch::empty({count * group.world_size()}, torch::kInt64);
  group.all_gather(sums, all);
  all = all.view({group.world_size(), count});
  const torch::NoGradGuard no_grad;
  for (int64_t i = 0; i < count; ++i) {
    const torch::Tensor column = all.select(1, i);
    if (column.eq(column[0]).all().item<bool>()) {
      continue;
    }
    torch::Tensor values = parameters[i].tensor.detach().clone(torch::MemoryFormat::Contiguous);
    group.broadcast(values, 0);
    parameters[i].tensor.set_data(values);
  }
}

void MemoryCounter::add_parameters(int64_t bytes) {
  memory_.parameter_bytes += bytes;
  memory_.peak_parameter_bytes = std::max(memory_.peak_parameter_bytes, memory_.parameter_bytes);
}

void MemoryCounter::add_gradients(int64_t bytes) {
  memory_.gradient_bytes += bytes;
  memory_.peak_gradient_bytes = std::max(memory_.peak_gradient_bytes, memory_.gradient_bytes);
}

void MemoryCounter::reset_peak() {
  memory_.peak_parameter_bytes = memory_.parameter_bytes;
  memory_.peak_gradient_bytes = memory_.gradient_bytes;
}

}  // namespace coxswain
