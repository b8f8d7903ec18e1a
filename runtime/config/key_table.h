// Every key that a person can write, once: where it stands in the YAML, its flag, what values it takes, its
// default, and which of the three answers it gets (a key that isn't here gets the fourth: unknown).
#pragma once

#include <yaml-cpp/yaml.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/config/train_config.h"

namespace coxswain {

enum class KeyAnswer {
  kImplemented,
  kNoEffect,     // accepted, with one notice that says why it does nothing
  kUnsupported,  // known to AITraining; refused with what to use, unless its value asks for nothing
};

// What an Apply says of a value it doesn't take. An empty sentence: "must be <values>" says enough.
struct ValueRefusal {
  std::string sentence;
};

struct ConfigKey {
  // Stores the value in the config, or refuses it.
  using Apply = std::function<std::optional<ValueRefusal>(const YAML::Node& value, TrainConfig& config)>;

  std::string field;  // AITraining's field name; the flag is its kebab-case
  std::string
      section;  // "" (top level), "data", "data.column_mapping", "hub", "params": where the YAML has it
  std::string yaml_name;  // its name there; differs from field for base_model and data.path
  KeyAnswer answer;
  std::string values;    // allowed values, in words that follow "must be"
  std::string standard;  // the default, as one would write it
  std::string text;      // meaning; or why it has no effect; or what to use instead
  bool is_boolean = false;
  bool is_secret = false;  // never printed nor written
  Apply apply;  // kImplemented; and for kNoEffect and kUnsupported where only some values are taken
  std::vector<std::string> asks_nothing = {};  // kUnsupported: values that change nothing ("" is null)

  std::string path() const { return section.empty() ? yaml_name : section + "." + yaml_name; }
};

const std::vector<ConfigKey>& key_table();

// By field name or YAML name at the top level, e.g. "lr", "model", "base_model"; nullptr: no such key.
const ConfigKey* find_key_by_field(const std::string& field);

// By path in the YAML. Any field may also stand under params, as in AITraining.
const ConfigKey* find_key_by_path(const std::string& path);

// The key in the table nearest to the last name of `path` by edit distance; nullptr where nothing is near.
const ConfigKey* nearest_key(const std::string& path);

// "did you mean NAME?", and where that one isn't supported, what to use instead. `name` is the path or the
// flag.
std::string did_you_mean(const ConfigKey& key, const std::string& name);

// docs/configuration.md: all of the table as Markdown.
std::string configuration_reference();

// "--batch-size".
std::string flag_name(const std::string& field);

// The two halves of the table.
std::vector<ConfigKey> implemented_keys();
std::vector<ConfigKey> other_keys();

}  // namespace coxswain
