// Ways to read one YAML value into a field of TrainConfig. Each makes a ConfigKey::Apply; `field` picks the
// member.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cctype>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/config/key_table.h"

namespace coxswain {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A YAML null, or the words that AITraining's users write for it.
bool is_none(const YAML::Node& value);

std::optional<int64_t> as_integer(const YAML::Node& value);
std::optional<double> as_real(const YAML::Node& value);  // finite
std::optional<bool> as_boolean(const YAML::Node& value);

// The value for a message: a scalar quoted, another kind by its name.
std::string describe(const YAML::Node& value);

// An integer ≥ minimum, or exactly `other`.
template <typename Field>
ConfigKey::Apply integer(Field field, int64_t minimum, std::optional<int64_t> other = std::nullopt,
                         int64_t maximum = std::numeric_limits<int64_t>::max()) {
  return [=](const YAML::Node& value, TrainConfig& config) -> std::optional<ValueRefusal> {
    const std::optional<int64_t> number = as_integer(value);
    if (!number || ((*number < minimum || *number > maximum) && number != other)) return ValueRefusal{};
    field(config) = static_cast<std::remove_reference_t<decltype(field(config))>>(*number);
    return std::nullopt;
  };
}

// A finite number for which `allowed` holds.
template <typename Field>
ConfigKey::Apply real(Field field, bool (*allowed)(double)) {
  return [=](const YAML::Node& value, TrainConfig& config) -> std::optional<ValueRefusal> {
    const std::optional<double> number = as_real(value);
    if (!number || !allowed(*number)) return ValueRefusal{};
    field(config) = *number;
    return std::nullopt;
  };
}

template <typename Field>
ConfigKey::Apply boolean(Field field, bool negated = false) {
  return [=](const YAML::Node& value, TrainConfig& config) -> std::optional<ValueRefusal> {
    const std::optional<bool> flag = as_boolean(value);
    if (!flag) return ValueRefusal{};
    field(config) = *flag != negated;
    return std::nullopt;
  };
}

template <typename Field>
ConfigKey::Apply text(Field field) {
  return [=](const YAML::Node& value, TrainConfig& config) -> std::optional<ValueRefusal> {
    if (!value.IsScalar() || value.Scalar().empty()) return ValueRefusal{};
    field(config) = value.Scalar();
    return std::nullopt;
  };
}

// One of the words; case doesn't matter. `none` also stands for a YAML null where it is among them. A word in
// `unsupported` is refused with the sentence beside it.
template <typename Field, typename Value>
ConfigKey::Apply choice(Field field, std::map<std::string, Value> words,
                        std::map<std::string, std::string> unsupported = {}) {
  return [=](const YAML::Node& value, TrainConfig& config) -> std::optional<ValueRefusal> {
    if (!value.IsScalar() && !value.IsNull()) return ValueRefusal{};
    std::string word = is_none(value) ? "none" : value.Scalar();
    for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (const auto found = words.find(word); found != words.end()) {
      field(config) = found->second;
      return std::nullopt;
    }
    const auto known = unsupported.find(word);
    return ValueRefusal{known == unsupported.end() ? "" : known->second};
  };
}

}  // namespace coxswain
