#include "runtime/model/safetensors.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/model/durable_file.h"

namespace coxswain {
namespace {

constexpr char kSingleFile[] = "model.safetensors";
constexpr char kIndexFile[] = "model.safetensors.index.json";

struct DtypeName {
  const char* name;
  at::ScalarType type;
};
constexpr DtypeName kTypes[] = {{"F32", at::kFloat},  {"BF16", at::kBFloat16}, {"F16", at::kHalf},
                                {"F64", at::kDouble}, {"I64", at::kLong},      {"I32", at::kInt},
                                {"I16", at::kShort},  {"I8", at::kChar},       {"U8", at::kByte},
                                {"BOOL", at::kBool}};

const at::ScalarType* torch_type(const std::string& dtype) {
  for (const auto& known : kTypes) {
    if (dtype == known.name) return &known.type;
  }
  return nullptr;
}

const char* dtype_name(at::ScalarType type) {
  for (const auto& known : kTypes) {
    if (type == known.type) return known.name;
  }
  return nullptr;
}

std::string shard_name(size_t index, size_t count) {
  char name[64];
  std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", index + 1, count);
  return name;
}

}  // namespace

Result<SafetensorsReader> SafetensorsReader::open(const std::vector<std::string>& paths) {
  SafetensorsReader reader;
  for (const auto& path : paths) {
    auto mapping = map_file(path);
    if (!mapping) return tl::unexpected(mapping.error());
    if ((*mapping)->data != nullptr) ::madvise((*mapping)->data, (*mapping)->bytes, MADV_WILLNEED);
    auto header = parse_safetensors_header((*mapping)->content(), path);
    if (!header) return tl::unexpected(header.error());
    for (auto& entry : header->entries) {
      const std::string name = entry.name;
      if (!reader.entries_.emplace(name, std::move(entry)).second) {
        return bad_input(path + ": tensor '" + name + "' is in another file of the same model too.");
      }
      reader.mapping_of_[name] = *mapping;
    }
  }
  return reader;
}

Result<SafetensorsReader> SafetensorsReader::open_folder(const std::string& folder) {
  auto files = find_weight_files(folder);
  if (!files) return tl::unexpected(files.error());
  return open(*files);
}

Result<torch::Tensor> SafetensorsReader::tensor(const std::string& name) const {
  auto found = entries_.find(name);
  if (found == entries_.end()) return bad_input("there is no tensor '" + name + "' in the weights.");
  const SafetensorsEntry& entry = found->second;
  const std::shared_ptr<MappedFile>& mapping = mapping_of_.at(name);
  const at::ScalarType* type = torch_type(entry.dtype);
  if (type == nullptr) {
    return bad_input(mapping->path + ": tensor '" + name + "' has dtype " + entry.dtype +
                     ", which is not supported.");
  }
  const auto options = torch::TensorOptions().dtype(*type);
  char* data = mapping->data + entry.begin;
  if (reinterpret_cast<uintptr_t>(data) % c10::elementSize(*type) != 0) {
    torch::Tensor copy = torch::empty(entry.shape, options);
    std::memcpy(copy.data_ptr(), data, entry.end - entry.begin);
    return copy;
  }
  return torch::from_blob(
      data, entry.shape, [mapping](void*) {}, options);
}

Result<torch::Tensor> SafetensorsReader::tensor_fp32(const std::string& name) const {
  auto stored = tensor(name);
  if (!stored || stored->scalar_type() == at::kFloat) return stored;
  const auto& mapping = mapping_of_.at(name);
  const SafetensorsEntry& entry = entries_.at(name);
  if (stored->scalar_type() != at::kHalf && stored->scalar_type() != at::kBFloat16) {
    return bad_input(mapping->path + ": tensor '" + name + "' has dtype " + entry.dtype +
                     ", which is not supported for weights (F32, F16, BF16).");
  }
  torch::Tensor converted = stored->to(at::kFloat);
  // The pages inside that range hold nothing else and weren't written to.
  const uint64_t page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t begin = (entry.begin + page - 1) / page * page;
  const uint64_t end = entry.end / page * page;
  if (begin < end) ::madvise(mapping->data + begin, end - begin, MADV_DONTNEED);
  return converted;
}

Result<TensorMap> SafetensorsReader::all() const {
  TensorMap tensors;
  for (const auto& [name, entry] : entries_) {
    auto found = tensor(name);
    if (!found) return tl::unexpected(found.error());
    tensors[name] = *found;
  }
  return tensors;
}

Result<void> write_safetensors(const std::string& path, const TensorMap& tensors,
                               const std::map<std::string, std::string>& metadata) {
  std::vector<SafetensorsEntry> entries;
  for (const auto& [name, tensor] : tensors) {
    const char* dtype = dtype_name(tensor.scalar_type());
    if (dtype == nullptr) {
      return bad_input(path + ": tensor '" + name + "' has a dtype that safetensors has not.");
    }
    entries.push_back({name, dtype, tensor.sizes().vec(), 0, 0});
  }
  const std::string header = make_safetensors_header(entries, metadata);
  return write_file_durably(path, [&](const FileWriter& write) -> Result<void> {
    if (auto done = write(header.data(), header.size()); !done) return done;
    for (const auto& [name, tensor] : tensors) {
      const at::Tensor plain = tensor.detach().cpu().contiguous();
      auto done = write(static_cast<const char*>(plain.const_data_ptr()), plain.nbytes());
      if (!done) return done;
    }
    return {};
  });
}

namespace {

// Weights of an earlier save, split otherwise, would be read beside these or instead of them.
Result<void> remove_other_weights(const std::filesystem::path& folder, const std::set<std::string>& written) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (is_weight_file_name(name) && entry.is_regular_file() && !written.contains(name))
      std::filesystem::remove(entry.path(), error);
    if (error) break;
  }
  if (!error) return {};
  return fail(contract::ExitCode::kStorage, "Cannot remove an earlier save's weights from " +
                                                folder.string() + ": " + error.message() + ".");
}

}  // namespace

Result<void> write_model_weights(const std::string& folder, const TensorMap& tensors,
                                 uint64_t max_shard_bytes) {
  std::vector<uint64_t> sizes;
  uint64_t total = 0;
  for (const auto& [name, tensor] : tensors) {
    sizes.push_back(tensor.nbytes());
    total += tensor.nbytes();
  }
  const std::vector<size_t> shard_of = assign_shards(sizes, max_shard_bytes);
  const size_t shards = shard_of.empty() ? 1 : shard_of.back() + 1;
  const std::filesystem::path root(folder);
  if (shards == 1) {
    if (auto done = write_safetensors((root / kSingleFile).string(), tensors); !done) return done;
    return remove_other_weights(root, {kSingleFile});
  }

  nlohmann::json index = {{"metadata", {{"total_size", total}}}, {"weight_map", nlohmann::json::object()}};
  std::vector<TensorMap> parts(shards);
  size_t place = 0;
  for (const auto& [name, tensor] : tensors) {
    const size_t shard = shard_of[place++];
    parts[shard][name] = tensor;
    index["weight_map"][name] = shard_name(shard, shards);
  }
  for (size_t shard = 0; shard < shards; ++shard) {
    auto done = write_safetensors((root / shard_name(shard, shards)).string(), parts[shard]);
    if (!done) return done;
  }
  if (auto done = write_file_durably((root / kIndexFile).string(), index.dump(2) + "\n"); !done) return done;
  std::set<std::string> written = {kIndexFile};
  for (size_t shard = 0; shard < shards; ++shard) written.insert(shard_name(shard, shards));
  return remove_other_weights(root, written);
}

}  // namespace coxswain
