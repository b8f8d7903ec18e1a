// Which rows a rank trains on, and how many steps there are. Pure arithmetic.
//
// Note "sample stream". The training set is read as one endless stream: epoch after epoch, each a permutation
// of all rows (or file order, without shuffle). Global micro-step s takes places [s·world·batch,
// (s+1)·world·batch) of it, rank r the r-th `batch` of these. So all ranks make the same number of steps, an
// epoch neither repeats nor drops a row, the only state to save is how many places were consumed, and a run
// can go on from there with any number of ranks. Without shuffle the row is ((s·world + r)·batch + b) modulo
// the number of rows.
#pragma once

#include <cstdint>
#include <vector>

#include "contract/result.h"

namespace coxswain {

// The order of one epoch: a permutation of 0 … rows-1 that depends on rows, seed and epoch alone, the same on
// every platform and for ever (Fisher–Yates from the last place down; SplitMix64 stream started from seed and
// epoch; an index below n is drawn without bias by rejection).
std::vector<int64_t> epoch_permutation(int64_t rows, uint64_t seed, int64_t epoch);

// Not thread-safe: keeps the order of the epoch it was last asked for.
class Sampler {
 public:
  Sampler(int64_t rows, uint64_t seed, bool shuffle);  // rows ≥ 1

  int64_t row_at(int64_t place);  // of the stream; place ≥ 0

  // The `batch` rows of `rank` in the micro-step that begins at place `consumed`. The next one begins at
  // consumed + world·batch.
  std::vector<int64_t> micro_batch(int64_t consumed, int rank, int64_t batch);

 private:
  int64_t rows_;
  uint64_t seed_;
  bool shuffle_;
  int64_t epoch_ = -1;
  std::vector<int64_t> order_;
};

// Where a run is: what a checkpoint keeps.
struct TrainPosition {
  int64_t step = 0;      // optimizer steps done
  int64_t consumed = 0;  // places of the sample stream consumed
};

struct StepShape {
  int64_t rows = 0;
  int world_size = 1;
  int64_t batch_size = 1;             // rows a rank and micro-batch
  int64_t gradient_accumulation = 1;  // micro-batches an optimizer step
  double epochs = 1;
  int64_t max_steps = -1;  // wins over epochs if > 0
};

struct StepPlan {
  int64_t rows = 0;
  int64_t rows_per_micro_step = 0;  // of all ranks
  int64_t gradient_accumulation = 1;
  int64_t total_steps = 0;  // optimizer steps, those done before `from` included
  int64_t end = 0;          // places consumed when the last step is done

  // Micro-batches of the optimizer step that begins at `consumed`: gradient_accumulation, fewer in the last
  // step of a run by epochs, 0 at the end.
  int64_t micro_batches(int64_t consumed) const;
  double epoch(int64_t consumed) const { return static_cast<double>(consumed) / static_cast<double>(rows); }
  // Whether an epoch ended in the step that went from `before` to `after` places.
  bool ends_epoch(int64_t before, int64_t after) const { return before / rows != after / rows; }
};

// Steps of a run that goes on from `from` (a new one: {}). By epochs: as many micro-steps as cover
// epochs·rows places, the last one filled up from the next epoch. Fewer rows than ranks, or no step at all,
// is a bad input.
Result<StepPlan> plan_steps(const StepShape& shape, const TrainPosition& from);

// logging_steps -1: clamp(int(0.2 · rows / batch_size), 1, 25).
int64_t derived_logging_steps(int64_t rows, int64_t batch_size);

}  // namespace coxswain
