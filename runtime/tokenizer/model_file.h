// Small files of a model folder. Torch-free.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "contract/result.h"

namespace coxswain {

// The content of a file; nullopt if there is none. One that is there but can't be read is a bad input that
// names it.
Result<std::optional<std::string>> read_model_file(const std::filesystem::path& path);

// A file that holds one JSON object. A missing file is an empty object. Broken JSON is a bad input that names
// the file, what is wrong and where.
Result<nlohmann::json> read_model_json(const std::filesystem::path& path);

}  // namespace coxswain
