// TensorBoard event files: TFRecords of Event messages, as tensorboard's EventAccumulator reads them.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "contract/result.h"
#include "runtime/metrics/step_record.h"

namespace coxswain {

// Each record is one write(2). One writer at a time in a folder.
class TensorBoardWriter {
 public:
  // A new file in `folder` (made if need be), named so that it sorts after those there. With resume_step > 0,
  // or files already there, it tells TensorBoard to forget what those hold of steps > resume_step.
  static Result<TensorBoardWriter> open(const std::filesystem::path& folder, int64_t resume_step);

  TensorBoardWriter(TensorBoardWriter&& other) noexcept;
  TensorBoardWriter& operator=(TensorBoardWriter&& other) noexcept;
  ~TensorBoardWriter();

  // Values are stored as float32, NaN and infinities included. wall_time: unix seconds.
  Result<void> add_scalars(int64_t step, double wall_time,
                           const std::vector<std::pair<std::string, double>>& scalars);

  // train/loss, train/grad_norm, train/learning_rate, train/epoch, train/tokens_per_second,
  // train/step_seconds, train/rss_mib, at the present time.
  Result<void> add(const StepRecord& record);

 private:
  TensorBoardWriter(int fd, std::filesystem::path path);
  Result<void> write_event(const std::string& event);

  int fd_ = -1;
  std::filesystem::path path_;
};

}  // namespace coxswain
