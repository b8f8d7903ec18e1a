// The step between text and TrainConfig that YAML, overrides and flags share: a list of (key, value, where it
// stands).
#pragma once

#include <yaml-cpp/yaml.h>

#include <string>
#include <vector>

#include "contract/result.h"
#include "runtime/config/environment.h"
#include "runtime/config/key_table.h"
#include "runtime/config/train_config.h"

namespace coxswain {

// Not assignable: assigning a YAML::Node changes what its other handles see.
struct Setting {
  const ConfigKey* key;
  const YAML::Node value;
  std::string label;  // how messages call it: "config.yaml, line 4: params.lr", "--lr"
  bool under_params = false;
};

// In the order in which they count: of several for one key the last wins; `params` after the rest.
Result<std::vector<Setting>> settings_from_yaml(const std::string& yaml, const std::string& origin);

// "key=value"; the key by path or by field name.
Result<Setting> setting_from_override(const std::string& override_text);

// The same settings with ${NAME} in scalars replaced.
Result<std::vector<Setting>> expand_environment(const std::vector<Setting>& settings,
                                                const EnvironmentLookup& environment);

// Applies them, and settles what depends on several of them. `name_key` is how a missing key is asked for.
Result<TrainConfig> config_from_settings(const std::vector<Setting>& settings, const std::string& origin,
                                         std::string (*name_key)(const ConfigKey&));

// The settings as the text of a configuration file that gives the same TrainConfig; a secret is replaced by a
// word.
std::string yaml_of(const std::vector<Setting>& settings);

}  // namespace coxswain
