#include "runtime/config/key_table.h"

#include <algorithm>
#include <numeric>

namespace coxswain {

namespace {

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replace});
    }
  }
  return row.back();
}

std::string last_name(const std::string& path) {
  return path.substr(path.rfind('.') + 1);
}

std::string snake_case(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace

const std::vector<ConfigKey>& key_table() {
  static const std::vector<ConfigKey> kTable = [] {
    std::vector<ConfigKey> keys = implemented_keys();
    for (ConfigKey& key : other_keys()) keys.push_back(std::move(key));
    return keys;
  }();
  return kTable;
}

const ConfigKey* find_key_by_field(const std::string& field) {
  for (const ConfigKey& key : key_table())
    if (key.field == field || (key.section.empty() && key.yaml_name == field)) return &key;
  return nullptr;
}

const ConfigKey* find_key_by_path(const std::string& path) {
  for (const ConfigKey& key : key_table())
    if (key.path() == path) return &key;
  static const std::string kParams = "params.";
  if (!path.starts_with(kParams)) return nullptr;
  const std::string field = path.substr(kParams.size());
  // These belong to the file, not to the trainer's parameters.
  if (field == "task" || field == "backend" || field == "base_model") return nullptr;
  return find_key_by_field(field);
}

const ConfigKey* nearest_key(const std::string& path) {
  const std::string name = snake_case(last_name(path));
  // A right name in the wrong place.
  if (const ConfigKey* key = find_key_by_field(name)) return key;
  const ConfigKey* nearest = nullptr;
  size_t nearest_distance = std::max<size_t>(2, name.size() / 3) + 1;
  for (const ConfigKey& key : key_table()) {
    const size_t distance = std::min(edit_distance(name, key.field), edit_distance(name, key.yaml_name));
    if (distance < nearest_distance) {
      nearest = &key;
      nearest_distance = distance;
    }
  }
  return nearest;
}

std::string did_you_mean(const ConfigKey& key, const std::string& name) {
  const std::string question = "did you mean " + name + "?";
  return key.answer == KeyAnswer::kUnsupported ? question + " That one is not supported: " + key.text + "."
                                               : question;
}

std::string flag_name(const std::string& field) {
  std::string flag = "--" + field;
  std::replace(flag.begin() + 2, flag.end(), '_', '-');
  return flag;
}

}  // namespace coxswain
