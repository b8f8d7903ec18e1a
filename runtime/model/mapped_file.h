// A file as memory, without a copy.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "contract/result.h"

namespace coxswain {

struct MappedFile {
  std::string path;
  char* data = nullptr;  // null for an empty file; writes stay private to this process
  size_t bytes = 0;

  MappedFile() = default;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::string_view content() const { return {data, bytes}; }
};

// Mapped until the last owner goes. Fails with kBadInput for what is no readable file.
Result<std::shared_ptr<MappedFile>> map_file(const std::string& path);

}  // namespace coxswain
