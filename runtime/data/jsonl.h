// Reading a JSONL file line by line. Torch-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "contract/result.h"

namespace coxswain {

// Objects keep the order of their keys: chat templates may print them.
using OrderedJson = nlohmann::ordered_json;

// Maps the file and calls `use(line number from 1, the line's object)` for each line that isn't blank; ends
// at the first failure, its own or `use`'s. A file that can't be opened, invalid UTF-8 (line, byte from 1),
// broken JSON (line, column, what is wrong), a line that is no object and one nested beyond 100 levels are
// bad inputs that name the file.
Result<void> for_each_json_line(const std::filesystem::path& path,
                                const std::function<Result<void>(int64_t line, const OrderedJson& row)>& use);

// What a value is, for a sentence: "a string", "a list", "null" …
const char* describe_type(const OrderedJson& value);

// Offset of the first byte that isn't part of valid UTF-8 (surrogates and overlong forms aren't); nullopt if
// all is.
std::optional<size_t> find_invalid_utf8(std::string_view text);

}  // namespace coxswain
