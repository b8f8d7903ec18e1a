#include <algorithm>

#include "runtime/config/parse.h"
#include "runtime/config/settings.h"

namespace coxswain {

namespace {

std::string flag_of(const ConfigKey& key) {
  return flag_name(key.field);
}

std::string nearest_flag(const std::string& field) {
  const ConfigKey* key = nearest_key(field);
  return key ? did_you_mean(*key, flag_of(*key)) : "see coxswain-runtime llm --help for all flags";
}

bool is_flag(const std::string& argument) {
  return argument.starts_with("--");
}

// Reads one flag at arguments[at] and moves `at` past it and its value.
Result<Setting> read_flag(const std::vector<std::string>& arguments, size_t& at) {
  const std::string& argument = arguments[at++];
  if (!is_flag(argument) || argument.size() == 2)
    return bad_input("'" + argument + "' is no flag; flags are written --name value, e.g. --batch-size 4.");
  const size_t equals = argument.find('=');
  const std::string flag = argument.substr(0, equals);
  std::string field = flag.substr(2);
  std::replace(field.begin(), field.end(), '-', '_');

  const ConfigKey* key = find_key_by_field(field);
  if (!key && field.starts_with("no_")) {
    key = find_key_by_field(field.substr(3));
    if (key && key->is_boolean && equals == std::string::npos) return Setting{key, YAML::Node("false"), flag};
    key = nullptr;
  }
  if (!key) return bad_input("unknown flag " + flag + "; " + nearest_flag(field));
  if (equals != std::string::npos) return Setting{key, YAML::Node(argument.substr(equals + 1)), flag};
  const bool value_follows = at < arguments.size() && !is_flag(arguments[at]);
  if (key->is_boolean && !(value_follows && (arguments[at] == "true" || arguments[at] == "false" ||
                                             arguments[at] == "True" || arguments[at] == "False")))
    return Setting{key, YAML::Node("true"), flag};
  if (!value_follows)
    return bad_input(flag + " needs a value" + (key->values.empty() ? "" : ": " + key->values) + ".");
  return Setting{key, YAML::Node(arguments[at++]), flag};
}

}  // namespace

Result<ResolvedTrainConfig> parse_llm_flags(const std::vector<std::string>& arguments,
                                            const EnvironmentLookup& environment) {
  std::vector<Setting> settings;
  bool train = false;
  for (size_t at = 0; at < arguments.size();) {
    if (arguments[at] == "--train") {
      train = true;
      ++at;
      continue;
    }
    for (const char* other : {"--deploy", "--inference", "--interactive"})
      if (arguments[at] == other)
        return bad_input(arguments[at] + " is not supported; this program only does --train.");
    Result<Setting> setting = read_flag(arguments, at);
    if (!setting) return tl::unexpected(setting.error());
    settings.push_back(*setting);
  }
  if (!train)
    return bad_input("say --train: coxswain-runtime llm --train --model M --data-path D --project-name P.");
  const Result<std::vector<Setting>> expanded = expand_environment(settings, environment);
  if (!expanded) return tl::unexpected(expanded.error());
  Result<TrainConfig> config = config_from_settings(*expanded, "coxswain-runtime llm", flag_of);
  if (!config) return tl::unexpected(config.error());
  return ResolvedTrainConfig{*std::move(config), yaml_of(*expanded)};
}

}  // namespace coxswain
