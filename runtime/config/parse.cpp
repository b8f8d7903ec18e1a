#include "runtime/config/parse.h"

#include <fstream>
#include <sstream>

#include "runtime/config/settings.h"

namespace coxswain {

namespace {

Result<std::vector<Setting>> read_settings(const std::string& yaml, const std::string& origin,
                                           const std::vector<std::string>& overrides,
                                           const EnvironmentLookup& environment) {
  Result<std::vector<Setting>> settings = settings_from_yaml(yaml, origin);
  if (!settings) return settings;
  for (const std::string& text : overrides) {
    Result<Setting> setting = setting_from_override(text);
    if (!setting) return tl::unexpected(setting.error());
    settings->push_back(*setting);
  }
  return expand_environment(*settings, environment);
}

std::string name_by_path(const ConfigKey& key) {
  return key.path();
}

Result<std::string> read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  std::error_code error;
  if (!file || std::filesystem::is_directory(path, error) || !(text << file.rdbuf()))
    return bad_input("The configuration file " + path.string() +
                     " can't be read; check the path and that it is not empty.");
  return text.str();
}

}  // namespace

Result<TrainConfig> parse_train_config(const std::string& yaml, const std::string& origin,
                                       const std::vector<std::string>& overrides,
                                       const EnvironmentLookup& environment) {
  Result<std::vector<Setting>> settings = read_settings(yaml, origin, overrides, environment);
  if (!settings) return tl::unexpected(settings.error());
  return config_from_settings(*settings, origin, name_by_path);
}

Result<TrainConfig> load_train_config(const std::filesystem::path& path,
                                      const std::vector<std::string>& overrides,
                                      const EnvironmentLookup& environment) {
  Result<std::string> yaml = read_file(path);
  if (!yaml) return tl::unexpected(yaml.error());
  return parse_train_config(*yaml, path.string(), overrides, environment);
}

Result<ResolvedTrainConfig> resolve_train_config(const std::filesystem::path& path,
                                                 const std::vector<std::string>& overrides,
                                                 const EnvironmentLookup& environment) {
  Result<std::string> yaml = read_file(path);
  if (!yaml) return tl::unexpected(yaml.error());
  Result<std::vector<Setting>> settings = read_settings(*yaml, path.string(), overrides, environment);
  if (!settings) return tl::unexpected(settings.error());
  Result<TrainConfig> config = config_from_settings(*settings, path.string(), name_by_path);
  if (!config) return tl::unexpected(config.error());
  return ResolvedTrainConfig{*std::move(config), yaml_of(*settings)};
}

}  // namespace coxswain
