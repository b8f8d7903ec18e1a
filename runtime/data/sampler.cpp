#include "runtime/data/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

namespace coxswain {
namespace {

uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t state) : state_(state) {}

  uint64_t below(uint64_t n) {
    const uint64_t biased = (0 - n) % n;  // 2^64 mod n: the draws that would favour small indices
    uint64_t draw = next();
    while (draw < biased) draw = next();
    return draw % n;
  }

 private:
  uint64_t next() { return mix64(state_ += 0x9E3779B97F4A7C15ULL); }

  uint64_t state_;
};

int64_t ceil_divide(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

std::vector<int64_t> epoch_permutation(int64_t rows, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order(rows);
  std::iota(order.begin(), order.end(), int64_t{0});
  SplitMix64 random(mix64(mix64(seed) ^ static_cast<uint64_t>(epoch)));
  for (int64_t last = rows - 1; last > 0; --last) {
    std::swap(order[last], order[random.below(static_cast<uint64_t>(last) + 1)]);
  }
  return order;
}

Sampler::Sampler(int64_t rows, uint64_t seed, bool shuffle) : rows_(rows), seed_(seed), shuffle_(shuffle) {}

int64_t Sampler::row_at(int64_t place) {
  if (!shuffle_) return place % rows_;
  if (const int64_t epoch = place / rows_; epoch != epoch_) {
    order_ = epoch_permutation(rows_, seed_, epoch);
    epoch_ = epoch;
  }
  return order_[place % rows_];
}

std::vector<int64_t> Sampler::micro_batch(int64_t consumed, int rank, int64_t batch) {
  std::vector<int64_t> rows;
  rows.reserve(batch);
  for (int64_t b = 0; b < batch; ++b) rows.push_back(row_at(consumed + rank * batch + b));
  return rows;
}

int64_t StepPlan::micro_batches(int64_t consumed) const {
  return std::clamp(ceil_divide(end - consumed, rows_per_micro_step), int64_t{0}, gradient_accumulation);
}

constexpr double kMostRows = 4e18;  // below 2^62, so that no sum of two overflows

Result<StepPlan> plan_steps(const StepShape& shape, const TrainPosition& from) {
  if (shape.rows < shape.world_size) {
    return bad_input("The training data has " + std::to_string(shape.rows) + " row(s) for " +
                     std::to_string(shape.world_size) +
                     " ranks; every rank needs at least one row: use fewer processes, or more data.");
  }
  StepPlan plan;
  plan.rows = shape.rows;
  plan.rows_per_micro_step = shape.world_size * shape.batch_size;
  plan.gradient_accumulation = shape.gradient_accumulation;
  const int64_t rows_per_step = plan.rows_per_micro_step * shape.gradient_accumulation;
  if (static_cast<double>(shape.max_steps) * static_cast<double>(rows_per_step) > kMostRows) {
    return bad_input("max_steps " + std::to_string(shape.max_steps) + " of " + std::to_string(rows_per_step) +
                     " rows each is more than can be counted; give fewer steps.");
  }
  if (shape.max_steps > 0) {
    plan.total_steps = shape.max_steps;
    plan.end = from.consumed + std::max(int64_t{0}, shape.max_steps - from.step) * rows_per_step;
    return plan;
  }
  const auto wanted = static_cast<int64_t>(std::ceil(shape.epochs * static_cast<double>(shape.rows)));
  if (wanted <= 0) {
    return bad_input("epochs is " + std::to_string(shape.epochs) +
                     ", which leaves no step; give a number above 0.");
  }
  const int64_t micro_steps =
      ceil_divide(std::max(int64_t{0}, wanted - from.consumed), plan.rows_per_micro_step);
  plan.end = from.consumed + micro_steps * plan.rows_per_micro_step;
  plan.total_steps = from.step + ceil_divide(micro_steps, shape.gradient_accumulation);
  return plan;
}

int64_t derived_logging_steps(int64_t rows, int64_t batch_size) {
  return std::clamp(static_cast<int64_t>(0.2 * static_cast<double>(rows) / static_cast<double>(batch_size)),
                    int64_t{1}, int64_t{25});
}

}  // namespace coxswain
