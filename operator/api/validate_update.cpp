// What may change when, twin of the CRD's transition rules.
#include "operator/api/schema.h"
#include "operator/api/validate.h"

namespace coxswain {
namespace {

constexpr const char* kMutableWhileSuspended[] = {"config", "template", "nodes",   "image",       "resources",
                                                  "env",    "envFrom",  "volumes", "volumeMounts"};
constexpr const char* kImmutable[] = {"processesPerNode", "output", "recovery"};
constexpr const char* kImmutableInRunPolicy[] = {"backoffLimit", "cleanPodPolicy",
                                                 "terminationGracePeriodSeconds"};

Json keyed(const Schema& schema, const Json& value);

Json keyed_members(const Schema& schema, const Json& value) {
  Json out = value;
  for (const auto& [name, property] : schema.properties) {
    if (value.contains(name)) out[name] = keyed(property, value[name]);
  }
  return out;
}

// Lists whose items have a key compare without their order, as they do in an API server.
Json keyed(const Schema& schema, const Json& value) {
  if (schema.type == FieldType::kObject && value.is_object()) return keyed_members(schema, value);
  if (schema.type != FieldType::kArray || schema.list_map_key.empty() || !value.is_array()) return value;
  Json out = Json::object();
  for (const Json& item : value) {
    out[item.value(schema.list_map_key, Json()).dump()] = keyed(schema.items.front(), item);
  }
  return out;
}

const Schema& spec_schema() {
  for (const auto& [name, property] : training_job_schema().properties) {
    if (name == "spec") return property;
  }
  return training_job_schema();
}

Json comparable_spec(const Json& object) {
  const Json spec = object.is_object() ? object.value("spec", Json::object()) : Json::object();
  return keyed(spec_schema(), with_defaults(spec_schema(), spec.is_object() ? spec : Json::object()));
}

bool differs(const Json& a, const Json& b, const std::string& field) {
  return a.value(field, Json()) != b.value(field, Json());
}

}  // namespace

std::vector<Problem> validate_update(const Json& object, const Json& old_object,
                                     const ConfigCheck& check_config) {
  std::vector<Problem> problems = validate(object, check_config);
  const Json now = comparable_spec(object);
  const Json before = comparable_spec(old_object);
  const bool was_suspended = before.value("suspend", Json()) == true;
  for (const char* field : kMutableWhileSuspended) {
    if (!was_suspended && differs(now, before, field)) {
      problems.push_back({std::string("spec.") + field, "can be changed only while the job is suspended"});
    }
  }
  for (const char* field : kImmutable) {
    if (differs(now, before, field)) problems.push_back({std::string("spec.") + field, "cannot be changed"});
  }
  const Json policy = now.value("runPolicy", Json::object());
  const Json old_policy = before.value("runPolicy", Json::object());
  for (const char* field : kImmutableInRunPolicy) {
    if (policy.is_object() && old_policy.is_object() && differs(policy, old_policy, field)) {
      problems.push_back({std::string("spec.runPolicy.") + field, "cannot be changed"});
    }
  }
  return problems;
}

}  // namespace coxswain
