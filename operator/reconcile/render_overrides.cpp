#include <algorithm>

#include "contract/contract.h"
#include "operator/reconcile/pod_parts.h"
#include "operator/reconcile/render.h"

namespace coxswain {
namespace {

std::string without_trailing_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

bool lies_at_or_under(const std::string& path, const std::string& folder) {
  return path == folder || path.rfind(folder + "/", 0) == 0;
}

std::string name_of(const Json& item, const char* key = "name") {
  const Json& value = item.is_object() && item.contains(key) ? item[key] : Json();
  return value.is_string() ? value.get<std::string>() : "";
}

class Overrides {
 public:
  void env(const Json& list, const std::string& where) {
    for (const Json& item : list) {
      if (is_reserved_env(name_of(item))) {
        found.push_back(where + " sets the environment variable " + name_of(item) +
                        ", which the operator sets itself.");
      }
    }
  }

  void mounts(const Json& list, const std::string& where) {
    for (const Json& item : list) {
      const std::string path = name_of(item, "mountPath");
      if (is_reserved_mount(path)) {
        found.push_back(where + " mounts something at " + path +
                        ", which is the operator's; use spec.output for " + contract::kOutputMount + ".");
      } else if (is_reserved_volume(name_of(item))) {
        found.push_back(where + " mounts the volume " + name_of(item) + ", which is the operator's.");
      }
    }
  }

  void volumes(const Json& list, const std::string& where) {
    for (const Json& item : list) {
      if (is_reserved_volume(name_of(item))) {
        found.push_back(where + " defines the volume " + name_of(item) + "; names that begin with " +
                        kVolumePrefix + " are the operator's.");
      }
    }
  }

  void pod_fields(const Json& pod_spec) {
    for (const char* key : {"hostname", "subdomain", "terminationGracePeriodSeconds"}) {
      if (pod_spec.contains(key)) {
        found.push_back(std::string("spec.template sets ") + key + ", which the operator sets itself.");
      }
    }
    if (pod_spec.contains("restartPolicy") && pod_spec["restartPolicy"] != "Never") {
      found.push_back(
          "spec.template sets a restartPolicy other than Never; the operator restarts the whole gang.");
    }
  }

  void labels(const Json& list) {
    for (const auto& [name, value] : list.items()) {
      if (is_reserved_label(name)) {
        found.push_back("spec.template sets the label " + name + ", which the operator sets itself.");
      }
    }
  }

  void trainer(const Json& container, bool with_config) {
    env(member_or_empty(container, "env", Json::value_t::array), "spec.template");
    mounts(member_or_empty(container, "volumeMounts", Json::value_t::array), "spec.template");
    for (const char* key : kRestartFields) {
      if (container.is_object() && container.contains(key)) {
        found.push_back(std::string("spec.template sets ") + key +
                        " of the container trainer; the operator restarts the whole gang.");
      }
    }
    for (const char* key : {"image", "command", "args"}) {
      if (with_config && container.is_object() && container.contains(key)) {
        found.push_back(std::string("spec.template sets ") + key +
                        " of the container trainer; with a config it runs " + "the runtime" +
                        (key == std::string("image") ? " (set spec.image)." : "."));
      }
    }
  }

  std::vector<std::string> found;
};

}  // namespace

Json member_or_empty(const Json& object, const char* key, Json::value_t type) {
  if (object.is_object() && object.contains(key) && object[key].type() == type) return object[key];
  return Json(type);
}

bool is_reserved_env(const std::string& name) {
  const auto reserved = [&name](const char* known) { return name == known; };
  return name == contract::kEnvRecoveryInterval ||
         std::any_of(std::begin(contract::kReservedEnv), std::end(contract::kReservedEnv), reserved);
}

bool is_reserved_volume(const std::string& name) {
  return name.rfind(kVolumePrefix, 0) == 0;
}

bool is_reserved_mount(const std::string& mount_path) {
  const std::string path = without_trailing_slash(mount_path);
  return path == "/" || path == "/etc" || lies_at_or_under(path, contract::kOutputMount) ||
         lies_at_or_under(path, contract::kConfigDir);
}

bool is_reserved_label(const std::string& name) {
  return name == contract::kLabelJobName || name == contract::kLabelNodeRank ||
         name == contract::kLabelAttempt;
}

std::vector<std::string> overridden_by_operator(const TrainingJob& job) {
  Overrides overrides;
  const TrainingJobSpec& spec = job.spec;
  const Json pod_spec = member_or_empty(spec.pod_template, "spec", Json::value_t::object);
  const Json metadata = member_or_empty(spec.pod_template, "metadata", Json::value_t::object);
  overrides.labels(member_or_empty(metadata, "labels", Json::value_t::object));
  overrides.pod_fields(pod_spec);
  overrides.volumes(member_or_empty(pod_spec, "volumes", Json::value_t::array), "spec.template");
  overrides.trainer(template_trainer(spec), spec.has_config());
  overrides.env(spec.env, "spec.env");
  overrides.mounts(spec.volume_mounts, "spec.volumeMounts");
  overrides.volumes(spec.volumes, "spec.volumes");
  return overrides.found;
}

}  // namespace coxswain
