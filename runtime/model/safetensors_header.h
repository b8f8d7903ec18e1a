// The safetensors format, without torch: the header of a file, and the index of a model in several files.
// Format: 8 bytes little-endian header length, a JSON object name → {dtype, shape, data_offsets}, then the
// data, which the offsets must cover without gap or overlap.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "contract/result.h"

namespace coxswain {

struct SafetensorsEntry {
  std::string name;
  std::string dtype;  // "F32", "BF16", …
  std::vector<int64_t> shape;
  uint64_t begin = 0;  // bytes from the start of the file
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // by name
  std::map<std::string, std::string> metadata;
};

// Bytes of one element of a dtype of the format, 0 if there is no such dtype.
uint64_t safetensors_dtype_bytes(std::string_view dtype);

// `file` is the whole file, `path` is for messages. Every lie that the header can tell is a kBadInput
// failure.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view file, const std::string& path);

// parse_safetensors_header of a file on disk, without reading the tensors. A file that can't be read is
// kBadInput too.
Result<void> check_safetensors_file(const std::string& path);

// The bytes that stand before the data: length and header. Entries' begin and end are set to where their data
// must be written, in the given order.
std::string make_safetensors_header(std::vector<SafetensorsEntry>& entries,
                                    const std::map<std::string, std::string>& metadata);

// The weight files of an HF model folder, as full paths: model.safetensors, or those that
// model.safetensors.index.json names (all of which must be there).
Result<std::vector<std::string>> find_weight_files(const std::string& folder);

// A name that a model's weights have in a folder: model.safetensors, its index, or
// model-0000i-of-0000n.safetensors.
bool is_weight_file_name(const std::string& name);

// How tensors of these sizes (bytes, in order) are spread over files of at most max_bytes each: the file
// number of each, from 0. A tensor larger than max_bytes has a file of its own.
std::vector<size_t> assign_shards(const std::vector<uint64_t>& sizes, uint64_t max_bytes);

}  // namespace coxswain
