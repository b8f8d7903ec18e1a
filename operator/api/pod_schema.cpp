#include "operator/api/pod_schema.h"

#include "operator/api/schema_check.h"
#include "operator/api/schema_parts.h"

namespace coxswain {
namespace {

constexpr int64_t kMany = 10000;

Schema text_map() {
  Schema schema = open_object();
  schema.additional.push_back(text());
  return schema;
}

Schema key_reference() {
  return open_object({{"name", text()}, {"key", text(1)}, {"optional", boolean()}}, {"key"});
}

Schema source_reference() {
  return open_object({{"name", text()}, {"optional", boolean()}});
}

Schema env() {
  Schema divisor;
  divisor.type = FieldType::kQuantity;
  Schema source =
      open_object({{"fieldRef", open_object({{"fieldPath", text(1)}}, {"fieldPath"})},
                   {"resourceFieldRef",
                    open_object({{"resource", text(1)}, {"divisor", std::move(divisor)}}, {"resource"})},
                   {"configMapKeyRef", key_reference()},
                   {"secretKeyRef", key_reference()}});
  return list(open_object({{"name", text(1)}, {"value", text()}, {"valueFrom", std::move(source)}}, {"name"}),
              kMany);
}

Schema env_from() {
  return list(
      open_object(
          {{"prefix", text()}, {"configMapRef", source_reference()}, {"secretRef", source_reference()}}),
      kMany);
}

Schema volumes() {
  Schema item = open_object({{"key", text(1)}, {"path", text(1)}}, {"key", "path"});
  Schema config_map =
      open_object({{"name", text()}, {"optional", boolean()}, {"items", list(std::move(item), kMany)}});
  return list(open_object({{"name", text(1)},
                           {"emptyDir", open_object()},
                           {"hostPath", open_object({{"path", text(1)}}, {"path"})},
                           {"persistentVolumeClaim", open_object({{"claimName", text(1)}}, {"claimName"})},
                           {"configMap", std::move(config_map)}},
                          {"name"}),
              kMany);
}

Schema volume_mounts() {
  return list(
      open_object({{"name", text(1)}, {"mountPath", text(1)}, {"subPath", text()}, {"readOnly", boolean()}},
                  {"name", "mountPath"}),
      kMany);
}

Schema containers() {
  return list(
      open_object({{"name", text(1)},
                   {"image", text()},
                   {"command", list(text(), kMany)},
                   {"args", list(text(), kMany)},
                   {"workingDir", text()},
                   {"restartPolicy", text()},
                   {"terminationMessagePolicy", text()},
                   {"env", env()},
                   {"envFrom", env_from()},
                   {"resources", open_object({{"limits", open_object()}, {"requests", open_object()}})},
                   {"volumeMounts", volume_mounts()},
                   {"securityContext", open_object()}},
                  {"name"}),
      kMany, "name");
}

Schema pod_template() {
  return open_object({{"metadata", open_object({{"labels", text_map()}, {"annotations", text_map()}})},
                      {"spec", open_object({{"containers", containers()},
                                            {"initContainers", containers()},
                                            {"volumes", volumes()},
                                            {"nodeSelector", text_map()},
                                            {"securityContext", open_object()}})}});
}

const Schema& pod_parts() {
  static const Schema schema = open_object({{"template", pod_template()},
                                            {"env", env()},
                                            {"envFrom", env_from()},
                                            {"volumes", volumes()},
                                            {"volumeMounts", volume_mounts()}});
  return schema;
}

}  // namespace

void check_pod_parts(const Json& spec, std::vector<Problem>& problems) {
  Json parts = Json::object();
  for (const auto& [name, _] : pod_parts().properties) {
    if (spec.contains(name)) parts[name] = without_nulls(spec[name]);
  }
  check_schema(pod_parts(), parts, "spec", problems);
}

Json without_nulls(Json value) {
  if (value.is_object()) {
    for (auto member = value.begin(); member != value.end();) {
      if (member->is_null()) {
        member = value.erase(member);
      } else {
        *member = without_nulls(std::move(*member));
        ++member;
      }
    }
  } else if (value.is_array()) {
    for (Json& item : value) item = without_nulls(std::move(item));
  }
  return value;
}

}  // namespace coxswain
