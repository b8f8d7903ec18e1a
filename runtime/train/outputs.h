// What a training leaves in the project folder.
#pragma once

#include <torch/torch.h>

#include <filesystem>
#include <map>
#include <string>

#include "contract/result.h"
#include "runtime/config/train_config.h"
#include "runtime/train/session.h"

namespace coxswain {

// What a person asks after a run; of every rank, by rank.
struct RunStatistics {
  std::vector<int64_t> peak_rss_mib;
  std::vector<int64_t> parameter_bytes;  // held between steps
  std::vector<int64_t> peak_parameter_bytes;
  std::vector<int64_t> peak_gradient_bytes;
  std::vector<int64_t> optimizer_bytes;
  std::vector<double> first_forward_unix_seconds;  // when the first forward began; 0: there was none
};

// Every rank calls it.
RunStatistics gather_statistics(TrainingSession& session, double first_forward_unix_seconds);

// A folder that transformers loads, or with peft one that peft loads; with the tokenizer's files.
// `parameters`: whole tensors by name (full_parameters()).
Result<void> write_model_or_adapter(const TrainConfig& config, const std::filesystem::path& folder,
                                    const std::map<std::string, torch::Tensor>& parameters);

// trainer_state.json: step, epoch, tokens, and with `statistics` those.
Result<void> write_trainer_state(const TrainingSession& session, const std::filesystem::path& folder,
                                 const RunStatistics* statistics);

// The end of a training, every rank calls it: the model (merged, unless merge_adapter is false) or the
// adapter, model card (`last_loss`: none if this attempt made no step), training_params.json,
// trainer_state.json; then the recovery folder is marked finished and emptied.
Result<void> write_final_outputs(TrainingSession& session, const RunStatistics& statistics,
                                 std::optional<double> last_loss);

}  // namespace coxswain
