#include "operator/manager/config_check.h"

#include "operator/api/parse.h"
#include "runtime/config/parse.h"

namespace coxswain {

namespace {

std::optional<std::string> literal_value(const Json& env, const std::string& name) {
  std::optional<std::string> value;
  for (const Json& entry : env) {
    if (!entry.is_object() || entry.value("name", Json()) != name) continue;
    const auto it = entry.find("value");
    // The last one counts, as in a container.
    value = it != entry.end() && it->is_string() ? std::optional(it->get<std::string>()) : std::nullopt;
  }
  // $(OTHER) in it is for the kubelet to replace.
  return value && value->find("$(") == std::string::npos ? value : std::nullopt;
}

}  // namespace

std::optional<std::string> check_config_of(const TrainingJobSpec& spec) {
  bool is_any_unknown = false;
  const auto environment = [&](const std::string& name) -> std::optional<std::string> {
    const auto value = literal_value(spec.env, name);
    is_any_unknown = is_any_unknown || !value;
    return value.value_or("");
  };
  const auto parsed = parse_train_config(to_yaml(spec.config), "spec.config", {}, environment);
  if (parsed || is_any_unknown) return std::nullopt;
  return parsed.error().message;
}

}  // namespace coxswain
