// What a model's config.json says about the tokens it takes. Torch-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "contract/result.h"

namespace coxswain {

struct ModelLimits {
  int64_t vocabulary_size = 0;  // rows of the embedding: ids are below it
  int64_t max_length = 0;       // tokens of one sequence
};

// From config.json of a model folder: vocab_size, and max_position_embeddings or n_positions, of the file or
// of its text_config. The longest sequence: the user's model_max_length if given, else config.json's, else
// 2048.
Result<ModelLimits> read_model_limits(const std::filesystem::path& model_folder,
                                      std::optional<int64_t> model_max_length);

struct BlockSize {
  int64_t tokens = 0;
  std::optional<std::string> notice;  // a sentence, where the user's block_size was clamped
};

// -1: min(max_length, 1024); larger than max_length: clamped, with a notice.
BlockSize effective_block_size(int64_t block_size, int64_t max_length);

}  // namespace coxswain
