#include "operator/api/schema.h"

#include "contract/contract.h"
#include "operator/api/schema_parts.h"

namespace coxswain {
namespace {

constexpr char kDns1035[] = "^[a-z]([-a-z0-9]*[a-z0-9])?$";
constexpr char kDnsSubdomain[] = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
constexpr char kQuantity[] =
    "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|("
    "\\.[0-9]+)"
    ")))?$";

Schema quantities() {
  Schema quantity;
  quantity.type = FieldType::kQuantity;
  quantity.max_length = 64;
  quantity.pattern = kQuantity;
  Schema schema;
  schema.max_properties = 64;
  schema.additional.push_back(std::move(quantity));
  return schema;
}

Schema resources_schema() {
  return object({{"limits", quantities()},
                 {"requests", quantities()},
                 {"claims", list(open_object({{"name", text(1, 253)}}, {"name"}), 32, "name")}});
}

// Only what the rules look at; the API server checks the whole when the pods are created.
Schema template_schema() {
  Schema container = open_object(
      {{"name", text(1, 63)}, {"image", text({}, 1024)}, {"command", list(text({}, 8192), 256)}}, {"name"});
  return open_object({{"metadata", open_object()},
                      {"spec", open_object({{"containers", list(std::move(container), 32, "name")}})}});
}

Schema output_schema() {
  Schema claim = text(1, 253);
  claim.pattern = kDnsSubdomain;
  Schema output = object({{"claimName", std::move(claim)}, {"subPath", text({}, 1024)}});
  output.required = {"claimName"};
  return output;
}

Schema run_policy_schema() {
  Schema clean = text();
  clean.enumeration = {"Running", "All", "None"};
  clean.default_value = "Running";
  return object({{"backoffLimit", integer(0, kMaxInt, 3)},
                 {"activeDeadlineSeconds", integer(1)},
                 {"startupDeadlineSeconds", integer(1, kMaxInt, 1800)},
                 {"ttlSecondsAfterFinished", integer(0)},
                 {"cleanPodPolicy", std::move(clean)},
                 {"terminationGracePeriodSeconds", integer(0, kMaxInt, 120)},
                 {"hangTimeoutSeconds", integer(30)},
                 {"nodeLostTimeoutSeconds", integer(1, kMaxInt, 60)}},
                Json::object());
}

Schema spec_schema() {
  Schema config = open_object();
  config.max_properties = 256;
  Schema env = list(open_object({{"name", text(1, 253)}, {"value", text({}, 32768)}}, {"name"}), 256, "name");
  Schema volumes = list(open_object({{"name", text(1, 63)}}, {"name"}), 64, "name");
  Schema mounts =
      list(open_object({{"name", text(1, 63)}, {"mountPath", text(1, 1024)}}, {"name", "mountPath"}), 64,
           "mountPath");
  return object({{"config", std::move(config)},
                 {"template", template_schema()},
                 {"nodes", integer(1, 10000, 1)},
                 {"processesPerNode", integer(1, 1024)},
                 {"image", text(1, 1024)},
                 {"resources", resources_schema()},
                 {"env", std::move(env)},
                 {"envFrom", list(open_object(), 64)},
                 {"volumes", std::move(volumes)},
                 {"volumeMounts", std::move(mounts)},
                 {"output", output_schema()},
                 {"recovery", object({{"intervalSeconds", integer(0, kMaxInt, 600)}}, Json::object())},
                 {"suspend", boolean(false)},
                 {"runPolicy", run_policy_schema()}});
}

Schema time() {
  Schema schema = text();
  schema.pattern = "date-time";  // rendered as a format, see to_openapi
  return schema;
}

Schema condition_schema() {
  Schema status = text();
  status.enumeration = {"True", "False", "Unknown"};
  Schema condition = object({{"type", text({}, 316)},
                             {"status", std::move(status)},
                             {"reason", text(1, 1024)},
                             {"message", text({}, 32768)},
                             {"observedGeneration", any_integer()},
                             {"lastTransitionTime", time()}});
  condition.required = {"type", "status", "reason", "message", "lastTransitionTime"};
  return condition;
}

Schema status_schema() {
  return object(
      {{"observedGeneration", any_integer()},
       {"conditions", list(condition_schema(), 32, "type")},
       {"phase", text()},
       {"attempt", any_integer()},
       {"runtimeImage", text()},
       {"nodes", object({{"desired", any_integer()},
                         {"active", any_integer()},
                         {"ready", any_integer()},
                         {"succeeded", any_integer()},
                         {"failed", any_integer()}})},
       {"restarts",
        object({{"counted", any_integer()}, {"disruptions", any_integer()}, {"hangs", any_integer()}})},
       {"startTime", time()},
       {"startupTime", time()},
       {"completionTime", time()},
       {"lastFailure", object({{"time", time()},
                               {"attempt", any_integer()},
                               {"pod", text()},
                               {"nodeRank", any_integer()},
                               {"cause", text()},
                               {"exitCode", any_integer()},
                               {"message", text()}})},
       {"training", object({{"step", any_integer()},
                            {"totalSteps", any_integer()},
                            {"epoch", text()},
                            {"loss", text()},
                            {"tokensPerSecond", text()},
                            {"estimatedCompletionTime", time()},
                            {"lastProgressTime", time()},
                            {"lastCheckpointStep", any_integer()}})}});
}

Schema root_schema() {
  Schema name = text({}, 61);
  name.pattern = kDns1035;
  Schema root = object({{"apiVersion", text()},
                        {"kind", text()},
                        {"metadata", object({{"name", std::move(name)}})},
                        {"spec", spec_schema()},
                        {"status", status_schema()}});
  root.required = {"spec"};
  return root;
}

const char* type_word(FieldType type) {
  switch (type) {
    case FieldType::kObject:
      return "object";
    case FieldType::kArray:
      return "array";
    case FieldType::kString:
      return "string";
    case FieldType::kInteger:
      return "integer";
    case FieldType::kNumber:
      return "number";
    case FieldType::kBoolean:
      return "boolean";
    case FieldType::kQuantity:
      break;
  }
  return "";
}

void put_bounds(const Schema& schema, Json& out) {
  auto put = [&out](const char* key, const std::optional<int64_t>& bound) {
    if (bound) out[key] = *bound;
  };
  put("minimum", schema.minimum);
  put("maximum", schema.maximum);
  put("minLength", schema.min_length);
  put("maxLength", schema.max_length);
  put("maxItems", schema.max_items);
  put("maxProperties", schema.max_properties);
  if (schema.pattern == "date-time") {
    out["format"] = schema.pattern;
  } else if (!schema.pattern.empty()) {
    out["pattern"] = schema.pattern;
  }
  if (!schema.enumeration.empty()) out["enum"] = schema.enumeration;
  if (!schema.required.empty()) out["required"] = schema.required;
}

}  // namespace

const Schema& training_job_schema() {
  static const Schema schema = root_schema();
  return schema;
}

Json to_openapi(const Schema& schema) {
  Json out = Json::object();
  if (schema.type == FieldType::kQuantity) {
    out["x-kubernetes-int-or-string"] = true;
  } else {
    out["type"] = type_word(schema.type);
  }
  if (schema.type == FieldType::kInteger) out["format"] = "int64";
  if (!schema.default_value.is_null()) out["default"] = schema.default_value;
  if (schema.preserve_unknown) out["x-kubernetes-preserve-unknown-fields"] = true;
  put_bounds(schema, out);
  if (schema.type == FieldType::kArray) {
    out["items"] = to_openapi(schema.items.front());
    out["x-kubernetes-list-type"] = schema.list_map_key.empty() ? "atomic" : "map";
    if (!schema.list_map_key.empty()) out["x-kubernetes-list-map-keys"] = {schema.list_map_key};
  }
  if (!schema.additional.empty()) out["additionalProperties"] = to_openapi(schema.additional.front());
  for (const auto& [name, property] : schema.properties) out["properties"][name] = to_openapi(property);
  return out;
}

Json with_defaults(const Schema& schema, Json value) {
  if (schema.type == FieldType::kArray && value.is_array()) {
    for (Json& item : value) item = with_defaults(schema.items.front(), std::move(item));
  }
  if (schema.type != FieldType::kObject || !value.is_object()) return value;
  for (const auto& [name, property] : schema.properties) {
    auto found = value.find(name);
    if (found == value.end() || (found->is_null() && !property.default_value.is_null())) {
      if (property.default_value.is_null()) continue;
      value[name] = property.default_value;
    }
    value[name] = with_defaults(property, std::move(value[name]));
  }
  return value;
}

}  // namespace coxswain
