#include "runtime/model/safetensors_header.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "runtime/model/mapped_file.h"

namespace coxswain {
namespace {

using nlohmann::json;

constexpr uint64_t kLengthBytes = 8;
// The format's own limit; a longer one is a lie or an attack.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;

struct Dtype {
  const char* name;
  uint64_t bytes;
};
constexpr Dtype kDtypes[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},   {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"I16", 2},
                             {"U16", 2},  {"F16", 2}, {"BF16", 2}, {"I32", 4},     {"U32", 4},     {"F32", 4},
                             {"F64", 8},  {"I64", 8}, {"U64", 8},  {"C64", 8},     {"F8_E8M0", 1}};

uint64_t read_length(std::string_view file) {
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length |= static_cast<uint64_t>(static_cast<unsigned char>(file[i])) << (8 * i);
  }
  return length;
}

Result<json> parse_json(std::string_view text, const std::string& path) {
  std::string duplicate;
  std::set<std::string> names;
  auto note_duplicates = [&](int depth, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::key && depth == 1) {
      const auto& name = parsed.get_ref<const std::string&>();
      if (!names.insert(name).second) duplicate = name;
    }
    return true;
  };
  json header = json::parse(text.begin(), text.end(), note_duplicates, /*allow_exceptions=*/false);
  if (header.is_discarded() || !header.is_object()) {
    return bad_input(path +
                     ": the safetensors header is not a JSON object; the file is damaged, fetch it again.");
  }
  if (!duplicate.empty()) {
    return bad_input(path + ": the safetensors header names tensor '" + duplicate +
                     "' twice; the file is damaged.");
  }
  return header;
}

bool read_sizes(const json& list, std::vector<int64_t>& values) {
  if (!list.is_array()) return false;
  for (const json& value : list) {
    const bool natural =
        value.is_number_unsigned() || (value.is_number_integer() && value.get<int64_t>() >= 0);
    if (!natural || value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) return false;
    values.push_back(value.get<int64_t>());
  }
  return true;
}

Result<SafetensorsEntry> read_entry(const std::string& name, const json& value, uint64_t data_bytes,
                                    const std::string& path) {
  const std::string where = path + ": tensor '" + name + "' ";
  SafetensorsEntry entry;
  entry.name = name;
  std::vector<int64_t> offsets;
  if (!value.is_object() || !value.contains("dtype") || !value["dtype"].is_string() ||
      !value.contains("shape") || !read_sizes(value["shape"], entry.shape) ||
      !value.contains("data_offsets") || !read_sizes(value["data_offsets"], offsets) || offsets.size() != 2) {
    return bad_input(where + "needs dtype, shape and two data_offsets in the header; the file is damaged.");
  }
  entry.dtype = value["dtype"].get<std::string>();
  uint64_t bytes = safetensors_dtype_bytes(entry.dtype);
  if (bytes == 0) return bad_input(where + "has dtype '" + entry.dtype + "', which is not supported.");
  entry.begin = static_cast<uint64_t>(offsets[0]);
  entry.end = static_cast<uint64_t>(offsets[1]);
  if (entry.begin > entry.end || entry.end > data_bytes) {
    return bad_input(where + "lies at bytes " + std::to_string(entry.begin) + " to " +
                     std::to_string(entry.end) + " of the data, but there are " + std::to_string(data_bytes) +
                     "; the file is truncated or damaged, fetch it again.");
  }
  for (int64_t size : entry.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes)) {
      return bad_input(where + "has a shape too large to exist; the file is damaged.");
    }
  }
  if (bytes != entry.end - entry.begin) {
    return bad_input(where + "has " + std::to_string(entry.end - entry.begin) +
                     " bytes of data, but its shape and dtype need " + std::to_string(bytes) +
                     "; the file is damaged.");
  }
  return entry;
}

// The data must be covered without gap or overlap.
Result<void> check_layout(const std::vector<SafetensorsEntry>& entries, uint64_t data_bytes,
                          const std::string& path) {
  std::vector<const SafetensorsEntry*> by_place;
  for (const auto& entry : entries) by_place.push_back(&entry);
  std::sort(by_place.begin(), by_place.end(), [](const auto* a, const auto* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  uint64_t at = 0;
  for (const auto* entry : by_place) {
    if (entry->begin != at) {
      return bad_input(path + ": the data of tensor '" + entry->name + "' " +
                       (entry->begin < at ? "overlaps another tensor's" : "comes after a gap") +
                       "; the file is damaged.");
    }
    at = entry->end;
  }
  if (at != data_bytes) {
    return bad_input(path + ": " + std::to_string(data_bytes - at) +
                     " bytes after the last tensor belong to none; the file is damaged.");
  }
  return {};
}

Result<std::vector<std::string>> files_of_index(const std::filesystem::path& index_path) {
  std::ifstream in(index_path);
  json index = json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (index.is_discarded() || !index.is_object() || !index.contains("weight_map") ||
      !index["weight_map"].is_object() || index["weight_map"].empty()) {
    return bad_input(index_path.string() + ": not a JSON object with a weight_map; the file is damaged.");
  }
  std::set<std::string> files;
  for (const auto& [name, file] : index["weight_map"].items()) {
    if (!file.is_string() ||
        std::filesystem::path(file.get<std::string>()).filename() != file.get<std::string>()) {
      return bad_input(index_path.string() + ": weight_map names no file of this folder for tensor '" + name +
                       "'.");
    }
    files.insert((index_path.parent_path() / file.get<std::string>()).string());
  }
  for (const auto& file : files) {
    if (!std::filesystem::is_regular_file(file)) {
      return bad_input(index_path.string() + ": names the file " + file +
                       ", which is not there; fetch the whole model again.");
    }
  }
  return std::vector<std::string>(files.begin(), files.end());
}

}  // namespace

uint64_t safetensors_dtype_bytes(std::string_view dtype) {
  for (const auto& known : kDtypes) {
    if (dtype == known.name) return known.bytes;
  }
  return 0;
}

Result<SafetensorsHeader> parse_safetensors_header(std::string_view file, const std::string& path) {
  if (file.size() < kLengthBytes) {
    return bad_input(path + ": " + std::to_string(file.size()) +
                     " bytes are too few for a safetensors file; it is truncated, fetch it again.");
  }
  const uint64_t length = read_length(file);
  if (length > kMaxHeaderBytes || length > file.size() - kLengthBytes) {
    return bad_input(path + ": claims a header of " + std::to_string(length) + " bytes in a file of " +
                     std::to_string(file.size()) + "; it is truncated or not a safetensors file.");
  }
  auto json_header = parse_json(file.substr(kLengthBytes, length), path);
  if (!json_header) return tl::unexpected(json_header.error());

  SafetensorsHeader header;
  const uint64_t data_start = kLengthBytes + length;
  const uint64_t data_bytes = file.size() - data_start;
  for (const auto& [name, value] : json_header->items()) {
    if (name == "__metadata__") {
      if (!value.is_object())
        return bad_input(path + ": __metadata__ is not an object; the file is damaged.");
      for (const auto& [key, text] : value.items()) {
        if (text.is_string()) header.metadata[key] = text.get<std::string>();
      }
      continue;
    }
    auto entry = read_entry(name, value, data_bytes, path);
    if (!entry) return tl::unexpected(entry.error());
    header.entries.push_back(std::move(*entry));
  }
  if (auto checked = check_layout(header.entries, data_bytes, path); !checked) {
    return tl::unexpected(checked.error());
  }
  for (auto& entry : header.entries) {
    entry.begin += data_start;
    entry.end += data_start;
  }
  return header;
}

std::string make_safetensors_header(std::vector<SafetensorsEntry>& entries,
                                    const std::map<std::string, std::string>& metadata) {
  json header = json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t at = 0;
  for (auto& entry : entries) {
    uint64_t bytes = safetensors_dtype_bytes(entry.dtype);
    for (int64_t size : entry.shape) bytes *= static_cast<uint64_t>(size);
    entry.begin = at;
    entry.end = at += bytes;
    header[entry.name] = {
        {"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {entry.begin, entry.end}}};
  }
  std::string text = header.dump();
  // Data that starts at a multiple of 8 can be mapped as any dtype.
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string out;
  for (size_t i = 0; i < kLengthBytes; ++i) out.push_back(static_cast<char>((text.size() >> (8 * i)) & 0xff));
  out += text;
  for (auto& entry : entries) {
    entry.begin += out.size();
    entry.end += out.size();
  }
  return out;
}

Result<std::vector<std::string>> find_weight_files(const std::string& folder) {
  const std::filesystem::path root(folder);
  if (!std::filesystem::is_directory(root)) return bad_input(folder + ": there is no such model folder.");
  const auto single = root / "model.safetensors";
  if (std::filesystem::is_regular_file(single)) return std::vector<std::string>{single.string()};
  const auto index = root / "model.safetensors.index.json";
  if (std::filesystem::is_regular_file(index)) return files_of_index(index);
  return bad_input(folder +
                   ": has neither model.safetensors nor model.safetensors.index.json; "
                   "other weight formats must be converted first.");
}

Result<void> check_safetensors_file(const std::string& path) {
  const auto file = map_file(path);
  if (!file) return tl::unexpected(file.error());
  const auto header = parse_safetensors_header((*file)->content(), path);
  if (!header) return tl::unexpected(header.error());
  return {};
}

bool is_weight_file_name(const std::string& name) {
  static const std::regex pattern(R"(model(-\d{5}-of-\d{5})?\.safetensors|model\.safetensors\.index\.json)");
  return std::regex_match(name, pattern);
}

std::vector<size_t> assign_shards(const std::vector<uint64_t>& sizes, uint64_t max_bytes) {
  std::vector<size_t> shard_of;
  size_t shard = 0;
  uint64_t used = 0;
  for (uint64_t size : sizes) {
    if (used > 0 && used + size > max_bytes) {
      ++shard;
      used = 0;
    }
    used += size;
    shard_of.push_back(shard);
  }
  return shard_of;
}

}  // namespace coxswain
