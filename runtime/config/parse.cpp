#include "runtime/config/parse.h"

#include <fstream>
#include <sstream>

#include "runtime/config/settings.h"

namespace coxswain {

Result<TrainConfig> parse_train_config(const std::string& yaml, const std::string& origin,
                                       const std::vector<std::string>& overrides,
                                       const EnvironmentLookup& environment) {
  Result<std::vector<Setting>> settings = settings_from_yaml(yaml, origin);
  if (!settings) return tl::unexpected(settings.error());
  for (const std::string& text : overrides) {
    Result<Setting> setting = setting_from_override(text);
    if (!setting) return tl::unexpected(setting.error());
    settings->push_back(*setting);
  }
  if (Result<void> expanded = expand_environment(*settings, environment); !expanded)
    return tl::unexpected(expanded.error());
  return config_from_settings(*settings, origin, [](const ConfigKey& key) { return key.path(); });
}

Result<TrainConfig> load_train_config(const std::filesystem::path& path,
                                      const std::vector<std::string>& overrides,
                                      const EnvironmentLookup& environment) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !std::filesystem::is_regular_file(path) || !(text << file.rdbuf()))
    return bad_input("The configuration file " + path.string() +
                     " can't be read; check the path and that it is not empty.");
  return parse_train_config(text.str(), path.string(), overrides, environment);
}

}  // namespace coxswain
