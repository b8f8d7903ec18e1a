// Safetensors files as torch tensors. Reading copies nothing: F32 tensors alias a private mapping of the
// file, whose pages are copied by the kernel when (and only when) they are written to.
#pragma once

#include <torch/torch.h>

#include <map>
#include <memory>
#include <string>

#include "contract/result.h"
#include "runtime/model/mapped_file.h"
#include "runtime/model/safetensors_header.h"

namespace coxswain {

using TensorMap = std::map<std::string, torch::Tensor>;

// One or several files, mapped. Tensors keep the mapping alive, also after the reader is gone.
class SafetensorsReader {
 public:
  static Result<SafetensorsReader> open(const std::vector<std::string>& paths);
  // The weights of an HF model folder (see find_weight_files).
  static Result<SafetensorsReader> open_folder(const std::string& folder);

  const std::map<std::string, SafetensorsEntry>& entries() const { return entries_; }
  bool has(const std::string& name) const { return entries_.count(name) != 0; }

  // The tensor as it is stored; writable, writes never reach the file. kBadInput when there is none, or its
  // dtype is not one that torch has.
  Result<torch::Tensor> tensor(const std::string& name) const;
  // The same in fp32. F32 is not copied; F16 and BF16 are converted and their pages given back. Other dtypes
  // fail.
  Result<torch::Tensor> tensor_fp32(const std::string& name) const;

  // Every tensor, as stored.
  Result<TensorMap> all() const;

 private:
  std::map<std::string, SafetensorsEntry> entries_;
  std::map<std::string, std::shared_ptr<MappedFile>> mapping_of_;
};

// Writes one file: to `path`.tmp, fsync, rename, fsync of the folder. Tensors are written contiguous, one
// after the other, so that nothing is held twice; any device, any dtype that safetensors has. Tensors that
// share one memory must be left out by the caller. kStorage on failure.
Result<void> write_safetensors(const std::string& path, const TensorMap& tensors,
                               const std::map<std::string, std::string>& metadata = {{"format", "pt"}});

inline constexpr uint64_t kMaxShardBytes = 5'000'000'000;

// Writes model.safetensors, or model-0000x-of-0000y.safetensors and model.safetensors.index.json where they
// would exceed max_shard_bytes.
Result<void> write_model_weights(const std::string& folder, const TensorMap& tensors,
                                 uint64_t max_shard_bytes = kMaxShardBytes);

}  // namespace coxswain
