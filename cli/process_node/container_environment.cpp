#include "cli/process_node/container_environment.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <regex>

#include "contract/contract.h"
#include "operator/api/parse.h"
#include "runtime/launch/available_cpus.h"

namespace coxswain {

namespace {

bool is_reserved(const std::string& name) {
  const auto same = [&](const char* reserved) { return name == reserved; };
  return std::ranges::any_of(contract::kReservedEnv, same) || name == contract::kEnvAgentPort ||
         name == contract::kEnvTerminationLog || name == contract::kEnvProgressFd ||
         name == contract::kEnvRecoveryInterval;
}

std::string text_at(const Json& object, const std::string& pointer) {
  const Json::json_pointer path(pointer);
  return object.contains(path) && object.at(path).is_string() ? object.at(path).get<std::string>() : "";
}

// The downward API's fields. The pod's address is this machine's.
std::optional<std::string> field_of(const Json& pod, const std::string& path) {
  static const std::regex subscript(R"(metadata\.(labels|annotations)\['([^']+)'\])");
  std::smatch m;
  if (std::regex_match(path, m, subscript)) {
    const Json map = pod["metadata"].value(m[1].str(), Json::object());
    return map.value(m[2].str(), "");
  }
  if (path == "metadata.name" || path == "metadata.namespace" || path == "metadata.uid") {
    return text_at(pod, "/metadata/" + path.substr(9));
  }
  if (path == "status.podIP" || path == "status.podIPs" || path == "status.hostIP" ||
      path == "status.hostIPs") {
    return "127.0.0.1";
  }
  if (path == "spec.nodeName") return text_at(pod, "/spec/nodeName");
  if (path == "spec.serviceAccountName") return "default";
  return std::nullopt;
}

// A quantity may be written as a number or as text.
std::optional<double> amount_of(const Json& quantity) {
  return parse_quantity(quantity.is_string() ? quantity.get<std::string>() : quantity.dump());
}

// limits or requests of the container; what it doesn't limit is the machine's.
std::optional<std::string> resource_of(const Json& container, const Json& reference) {
  const std::string path = reference.value("resource", "");  // limits.cpu
  const auto dot = path.find('.');
  if (dot == std::string::npos) return std::nullopt;
  const std::string name = path.substr(dot + 1);
  const Json amounts =
      container.value("resources", Json::object()).value(path.substr(0, dot), Json::object());
  double amount = name == "memory" ? static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                                         static_cast<double>(sysconf(_SC_PAGESIZE))
                                   : available_cpus();
  if (amounts.contains(name)) {
    const auto parsed = amount_of(amounts[name]);
    if (!parsed) return std::nullopt;
    amount = *parsed;
  }
  const double divisor = amount_of(reference.value("divisor", Json(1))).value_or(1);
  constexpr double kLargest = 9e18;  // what fits
  return std::to_string(
      static_cast<int64_t>(std::clamp(std::ceil(amount / (divisor > 0 ? divisor : 1)), -kLargest, kLargest)));
}

Result<std::optional<std::string>> from_config_map(const Json& reference,
                                                   const ConfigMapLookup& config_maps) {
  const std::string name = reference.value("name", "");
  const std::string key = reference.value("key", "");
  const Json map = config_maps(name);
  const Json data = map.is_null() ? Json::object() : map.value("data", Json::object());
  if (data.contains(key)) return data[key].get<std::string>();
  if (reference.value("optional", false)) return std::nullopt;
  return bad_input("comes from key \"" + key + "\" of the ConfigMap \"" + name +
                   "\", which does not exist here");
}

// The value of one entry of `env`; none where it comes from something optional that isn't there.
Result<std::optional<std::string>> value_of(const Json& entry, const Json& pod, const Json& container,
                                            const Environment& base, const ConfigMapLookup& config_maps) {
  const auto source = entry.find("valueFrom");
  if (source == entry.end() || source->is_null()) return entry.value("value", "");
  if (source->contains("fieldRef")) {
    const std::string path = (*source)["fieldRef"].value("fieldPath", "");
    if (auto field = field_of(pod, path)) return field;
    return bad_input("asks for the field \"" + path + "\", which a pod doesn't offer to its environment");
  }
  if (source->contains("resourceFieldRef")) {
    if (auto amount = resource_of(container, (*source)["resourceFieldRef"])) return amount;
    return bad_input("asks for a resource that isn't there: " + (*source)["resourceFieldRef"].dump());
  }
  if (source->contains("configMapKeyRef")) return from_config_map((*source)["configMapKeyRef"], config_maps);
  if (source->contains("secretKeyRef")) {
    const std::string name = entry.value("name", "");
    if (const auto own = base.find(name); own != base.end()) return own->second;
    if ((*source)["secretKeyRef"].value("optional", false)) return std::nullopt;
    return bad_input("comes from the Secret \"" + (*source)["secretKeyRef"].value("name", "") +
                     "\", and there are no Secrets here: set " + name + " in your own environment instead");
  }
  return bad_input("has a source that is not supported here: " + source->dump());
}

Result<void> add_env_from(const Json& entry, const ConfigMapLookup& config_maps, Environment& result) {
  const std::string prefix = entry.value("prefix", "");
  if (!entry.contains("configMapRef"))
    return {};  // a Secret's names aren't known here; they may be in `base` anyway
  const Json& reference = entry["configMapRef"];
  const Json map = config_maps(reference.value("name", ""));
  if (map.is_null()) {
    if (reference.value("optional", false)) return {};
    return bad_input("envFrom asks for the ConfigMap \"" + reference.value("name", "") +
                     "\", which does not exist here");
  }
  const Json data = map.value("data", Json::object());
  for (const auto& [key, value] : data.items()) result[prefix + key] = value.get<std::string>();
  return {};
}

}  // namespace

Environment base_environment() {
  Environment result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string pair = *entry;
    const auto equals = pair.find('=');
    if (equals == std::string::npos || is_reserved(pair.substr(0, equals))) continue;
    result[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  return result;
}

std::string expand(const std::string& text, const Environment& environment) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$' || i + 1 == text.size()) {
      result += text[i];
    } else if (text[i + 1] == '$') {
      result += '$';
      ++i;
    } else if (const auto end = text.find(')', i); text[i + 1] == '(' && end != std::string::npos) {
      const auto value = environment.find(text.substr(i + 2, end - i - 2));
      result += value != environment.end() ? value->second : text.substr(i, end - i + 1);
      i = end;
    } else {
      result += '$';
    }
  }
  return result;
}

Result<Environment> container_environment(const Json& pod, const Json& container, const Environment& base,
                                          const Environment& replaced, const PathMap& mounts,
                                          const ConfigMapLookup& config_maps) {
  Environment own;  // what $(NAME) sees: the container's own variables, not the machine's
  for (const Json& entry : container.value("envFrom", Json::array())) {
    if (auto added = add_env_from(entry, config_maps, own); !added) return tl::unexpected(added.error());
  }
  for (const Json& entry : container.value("env", Json::array())) {
    const std::string name = entry.value("name", "");
    if (const auto here = replaced.find(name); here != replaced.end()) {
      own[name] = here->second;
      continue;
    }
    auto value = value_of(entry, pod, container, base, config_maps);
    if (!value)
      return bad_input("the variable " + name + " of the container \"" + container.value("name", "") + "\" " +
                       value.error().message);
    if (*value) own[name] = mounts.rewrite(expand(**value, own));
  }
  Environment result = base;
  for (auto& [name, value] : own) result[name] = value;
  return result;
}

}  // namespace coxswain
