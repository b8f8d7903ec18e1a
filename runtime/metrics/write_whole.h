// One write(2) of a whole record to a file.
#pragma once

#include <filesystem>
#include <string>

#include "contract/result.h"

namespace coxswain {

// Appends `bytes`; on failure says what of which file (exit code kStorage). A file that ran full may hold a
// torn record.
Result<void> write_whole(int fd, const std::filesystem::path& path, const std::string& bytes);

}  // namespace coxswain
