#include "runtime/config/settings.h"

#include <algorithm>
#include <set>

#include "runtime/config/value.h"

namespace coxswain {

namespace {

std::string at_line(const std::string& origin, const YAML::Node& name) {
  const int line = name.Mark().line;
  return line < 0 ? origin : origin + ", line " + std::to_string(line + 1);
}

std::string suggestion(const std::string& path) {
  const ConfigKey* nearest = nearest_key(path);
  return nearest ? did_you_mean(*nearest, nearest->path()) : "see docs/configuration.md for all keys";
}

const std::set<std::string> kSections = {"data", "data.column_mapping", "hub", "params"};

// Adds the settings of one mapping; `prefix` is "" or "params.", "data.", ….
Result<void> collect(const YAML::Node& map, const std::string& prefix, const std::string& origin,
                     std::vector<Setting>& settings) {
  std::set<std::string> seen;
  for (const auto& entry : map) {
    const std::string where = at_line(origin, entry.first);
    if (!entry.first.IsScalar()) return bad_input(where + ": a key must be a word.");
    const std::string path = prefix + entry.first.Scalar();
    if (!seen.insert(path).second) return bad_input(where + ": " + path + " stands there twice; remove one.");
    if (kSections.contains(path)) {
      if (entry.second.IsNull()) continue;
      if (!entry.second.IsMap())
        return bad_input(where + ": " + path + " is " + describe(entry.second) +
                         ", but must be a mapping of keys to values.");
      if (Result<void> inner = collect(entry.second, path + ".", origin, settings); !inner) return inner;
      continue;
    }
    const ConfigKey* key = find_key_by_path(path);
    if (!key) return bad_input(where + ": unknown key " + path + "; " + suggestion(path));
    settings.push_back({key, entry.second, where + ": " + path, prefix == "params."});
  }
  return {};
}

bool may_expand_to_nothing(const ConfigKey& key) {
  return key.section == "hub" || key.is_secret;
}

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

Result<std::string> expand(const std::string& text, const Setting& setting,
                           const EnvironmentLookup& environment) {
  std::string expanded;
  size_t done = 0;
  for (size_t begin; (begin = text.find("${", done)) != std::string::npos;) {
    const size_t end = text.find('}', begin);
    const std::string name = end == std::string::npos ? "" : text.substr(begin + 2, end - begin - 2);
    expanded += text.substr(done, begin - done);
    if (name.empty() || !std::all_of(name.begin(), name.end(), is_name_character)) {
      expanded += "${";
      done = begin + 2;
      continue;
    }
    const std::optional<std::string> value = environment(name);
    if (!value && !may_expand_to_nothing(*setting.key))
      return bad_input(setting.label + " uses ${" + name + "}, but the environment variable " + name +
                       " is not set; set it, or write the value itself.");
    expanded += value.value_or("");
    done = end + 1;
  }
  return expanded + text.substr(done);
}

// No key takes lists of lists, so they are left as they are (an alias may even make a list contain itself).
Result<YAML::Node> expand_node(const YAML::Node& node, const Setting& setting,
                               const EnvironmentLookup& environment) {
  if (node.IsScalar() && node.Scalar().find("${") != std::string::npos) {
    Result<std::string> text = expand(node.Scalar(), setting, environment);
    if (!text) return tl::unexpected(text.error());
    return YAML::Node(*text);
  }
  if (!node.IsSequence()) return node;
  YAML::Node items(YAML::NodeType::Sequence);
  for (const YAML::Node& item : node) {
    Result<YAML::Node> expanded = item.IsScalar() ? expand_node(item, setting, environment) : item;
    if (!expanded) return expanded;
    items.push_back(*expanded);
  }
  return items;
}

YAML::Node section_of(YAML::Node root, const std::string& section) {
  if (section.empty()) return root;
  const size_t dot = section.find('.');
  YAML::Node outer = root[section.substr(0, dot)];
  return dot == std::string::npos ? outer : outer[section.substr(dot + 1)];
}

}  // namespace

Result<std::vector<Setting>> settings_from_yaml(const std::string& yaml, const std::string& origin) {
  YAML::Node root;
  try {
    root = YAML::Load(yaml);
  } catch (const YAML::Exception& error) {
    const std::string where =
        error.mark.line < 0 ? origin : origin + ", line " + std::to_string(error.mark.line + 1);
    return bad_input(where + ": not valid YAML: " + error.msg + ".");
  }
  if (!root.IsMap())
    return bad_input(origin + " is " + (root.IsNull() ? "empty" : describe(root)) +
                     ", but must be a mapping with base_model, project_name and data.");
  std::vector<Setting> settings;
  if (Result<void> collected = collect(root, "", origin, settings); !collected)
    return tl::unexpected(collected.error());
  std::vector<Setting> ordered;
  for (const bool under_params : {false, true})
    for (const Setting& setting : settings)
      if (setting.under_params == under_params) ordered.push_back(setting);
  return ordered;
}

Result<Setting> setting_from_override(const std::string& override_text) {
  const size_t equals = override_text.find('=');
  if (equals == std::string::npos || equals == 0)
    return bad_input("--set " + override_text + ": write it as key=value, e.g. --set params.lr=1e-4.");
  const std::string name = override_text.substr(0, equals);
  const ConfigKey* key = find_key_by_path(name);
  if (!key && name.find('.') == std::string::npos) key = find_key_by_field(name);
  if (!key) return bad_input("--set: unknown key " + name + "; " + suggestion(name));
  try {
    return Setting{key, YAML::Load(override_text.substr(equals + 1)), "--set " + name};
  } catch (const YAML::Exception& error) {
    return bad_input("--set " + name + ": the value is not valid YAML: " + error.msg + ".");
  }
}

Result<std::vector<Setting>> expand_environment(const std::vector<Setting>& settings,
                                                const EnvironmentLookup& environment) {
  std::vector<Setting> expanded;
  for (const Setting& setting : settings) {
    Result<YAML::Node> value = expand_node(setting.value, setting, environment);
    if (!value) return tl::unexpected(value.error());
    expanded.push_back({setting.key, *value, setting.label, setting.under_params});
  }
  return expanded;
}

std::string yaml_of(const std::vector<Setting>& settings) {
  YAML::Node root(YAML::NodeType::Map);
  for (const Setting& setting : settings) {
    const ConfigKey& key = *setting.key;
    if (key.answer == KeyAnswer::kUnsupported) continue;  // its value asks for nothing
    const bool hide = key.is_secret && !is_none(setting.value);
    section_of(root, key.section)[key.yaml_name] = hide ? YAML::Node("hidden") : setting.value;
  }
  YAML::Emitter emitter;
  emitter << root;
  return std::string(emitter.c_str()) + "\n";
}

}  // namespace coxswain
