// Files that are there whole or not at all, also after a crash: written to `path`.tmp, fsync, rename, fsync
// of the folder. Torch-free.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "contract/result.h"

namespace coxswain {

// Closes on destruction.
struct FileDescriptor {
  int fd = -1;

  explicit FileDescriptor(int opened) : fd(opened) {}
  FileDescriptor(const FileDescriptor&) = delete;
  ~FileDescriptor();
};

using FileWriter = std::function<Result<void>(const char* data, size_t bytes)>;

// `content` writes the file piece by piece; its failure, or the storage's (kStorage), leaves `path` as it
// was.
Result<void> write_file_durably(const std::string& path,
                                const std::function<Result<void>(const FileWriter&)>& content);
Result<void> write_file_durably(const std::string& path, std::string_view text);

}  // namespace coxswain
