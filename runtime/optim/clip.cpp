#include "runtime/optim/clip.h"

#include <ATen/Parallel.h>

#include <cmath>

namespace coxswain {
namespace {

constexpr int64_t kGrain = 1 << 15;
constexpr double kEpsilon = 1e-6;  // torch's

// In double: single precision loses digits over the tens of millions of elements of an embedding.
double sum_of_squares(const torch::Tensor& gradient) {
  const torch::Tensor values = gradient.to(torch::kFloat).contiguous();
  const float* data = values.const_data_ptr<float>();
  return at::parallel_reduce(
      0, values.numel(), kGrain, 0.0,
      [data](int64_t begin, int64_t end, double) {
        double lanes[8] = {};  // independent sums, so that they vectorise
        int64_t at = begin;
        for (; at + 8 <= end; at += 8) {
          for (int64_t lane = 0; lane < 8; ++lane) {
            const double value = data[at + lane];
            lanes[lane] += value * value;
          }
        }
        double sum = 0;
        for (; at < end; ++at) {
          sum += static_cast<double>(data[at]) * data[at];
        }
        for (const double lane : lanes) {
          sum += lane;
        }
        return sum;
      },
      [](double a, double b) { return a + b; });
}

}  // namespace

double clip_by_global_norm(ParallelStrategy& strategy, const std::vector<TrainableTensor>& tensors,
                           double max_norm) {
  const torch::NoGradGuard no_grad;
  double squares = 0;
  for (const TrainableTensor& tensor : tensors) {
    squares += sum_of_squares(tensor.gradient);
  }
  if (strategy.sharded()) {
    torch::Tensor total = torch::full({1}, squares, torch::kDouble);
    strategy.all_reduce_sum(total);
    squares = total.item<double>();
  }
  const double norm = std::sqrt(squares);
  const double scale = max_norm / (norm + kEpsilon);
  if (max_norm > 0 && std::isfinite(norm) && scale < 1) {
    for (const TrainableTensor& tensor : tensors) {
      torch::Tensor gradient = tensor.gradient;
      gradient.mul_(scale);
    }
  }
  return norm;
}

}  // namespace coxswain
