// For tensorboard_test.py: writes event files as a training does that was killed and resumed.
// write_event_files FOLDER RESUME_STEP LAST_STEP FACTOR: scalars of steps RESUME_STEP+1 … LAST_STEP.
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "runtime/metrics/tensorboard_writer.h"

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const int64_t resume_step = std::atoll(argv[2]);
  const int64_t last_step = std::atoll(argv[3]);
  const double factor = std::atof(argv[4]);
  coxswain::Result<coxswain::TensorBoardWriter> writer =
      coxswain::TensorBoardWriter::open(argv[1], resume_step);
  if (!writer) {
    std::fprintf(stderr, "%s\n", writer.error().message.c_str());
    return 1;
  }
  for (int64_t step = resume_step + 1; step <= last_step; ++step) {
    coxswain::StepRecord record;
    record.step = step;
    record.epoch = 0.125 * static_cast<double>(step);
    record.loss = step == 2 ? std::nan("") : factor / static_cast<double>(step);
    record.grad_norm = step == 3 ? HUGE_VAL : 1.5;
    record.learning_rate = 1e-5 * static_cast<double>(step);
    record.tokens_per_second = 1234.5;
    record.step_seconds = 0.25;
    record.rss_mib = 345;
    if (const coxswain::Result<void> added = writer->add(record); !added) {
      std::fprintf(stderr, "%s\n", added.error().message.c_str());
      return 1;
    }
  }
  return 0;
}
