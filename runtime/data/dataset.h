// The training set, tokenized: rows of token ids and labels held compactly in memory. Torch-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "contract/result.h"
#include "runtime/config/train_config.h"
#include "runtime/data/batch.h"

namespace coxswain {

// Immutable after load_dataset; usable from several threads at once.
class Dataset {
 public:
  int64_t size() const { return static_cast<int64_t>(row_begin_.size()) - 1; }
  Row row(int64_t index) const;  // 0 ≤ index < size()

  int64_t tokens() const { return static_cast<int64_t>(ids_.size()); }
  int64_t rows_without_target() const { return rows_without_target_; }
  int64_t longest_row() const { return longest_row_; }

  // To pad batches with: the tokenizer's pad token, else EOS, else 0.
  int64_t pad_id() const { return pad_id_; }
  void set_pad_id(int64_t id) { pad_id_ = id; }

  // One sentence each, for the person who trains: what was settled, clamped, cut or left without a target.
  const std::vector<std::string>& notices() const { return notices_; }
  void add_notice(std::string sentence) { notices_.push_back(std::move(sentence)); }

  // `labels` is empty where every label is the token itself. `segments` is empty for a row of one sample.
  void append(std::span<const int64_t> ids, std::span<const int64_t> labels,
              std::span<const int64_t> segments);

 private:
  std::vector<int32_t> ids_;
  std::vector<int32_t> labels_;               // empty while every label is the token itself
  std::vector<int64_t> row_begin_ = {0};      // into ids_, one more than rows
  std::vector<int32_t> segments_;             // lengths
  std::vector<int64_t> segment_begin_ = {0};  // into segments_, one more than rows
  int64_t rows_without_target_ = 0;
  int64_t longest_row_ = 0;
  int64_t pad_id_ = 0;
  std::vector<std::string> notices_;
};

// Reads config.data.path with the tokenizer, template and limits of the model folder config.base_model, and
// makes rows of at most effective_block_size tokens:
//   input_ids (labels optional)  each line a row, cut to the block size; needs no tokenizer
//   messages (trainer sft)       each line a row: the chat template rendered and tokenized; labels by
//   response_only_loss text, trainer sft            each line a row, cut to the block size text, trainer
//   default        samples packed into rows of the block size
// Every failure is a bad input (exit code 2) that names file, line and field. A row without target is kept;
// if no row has one, that is a failure.
Result<Dataset> load_dataset(const TrainConfig& config);

// The file that data.path means: itself, or {train_split}.jsonl in it, or the only .jsonl file in it.
Result<std::filesystem::path> find_data_file(const DataConfig& data);

}  // namespace coxswain
