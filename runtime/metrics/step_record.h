// What is recorded of one optimizer step.
#pragma once

#include <cstdint>
#include <string>

namespace coxswain {

struct StepRecord {
  int64_t step = 0;              // optimizer steps done, this one included: the first is 1
  double epoch = 0;              // fraction of epochs done
  double loss = 0;               // over the global batch's target tokens
  double grad_norm = 0;          // global, before clipping
  double learning_rate = 0;      // the one this step used
  int64_t tokens = 0;            // tokens of this step, all ranks, padding left out
  double tokens_per_second = 0;  // all ranks
  double step_seconds = 0;
  int64_t rss_mib = 0;  // resident memory of this process
};

// One JSON object without a newline, keys in the order above. A number that is NaN or infinite becomes null:
// JSON has no word for it, and null keeps a column numeric in pandas and jq (TensorBoard files carry the
// value itself).
std::string to_json(const StepRecord& record);

// Resident memory of this process now, in MiB; 0 where /proc can't be read.
int64_t current_rss_mib();

}  // namespace coxswain
