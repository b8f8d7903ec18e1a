// The one table of the TrainingJob's fields: type, default, bounds. parse.h takes defaults from it,
// validate.h checks by it, and a test holds it equal to the schema in crds/trainingjob.yaml in both
// directions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/training_job.h"

namespace coxswain {

enum class FieldType { kObject, kArray, kString, kInteger, kNumber, kBoolean, kQuantity /* int or string */ };

struct Property;

// A node of a structural schema. Unset bounds don't apply.
struct Schema {
  FieldType type = FieldType::kObject;
  Json default_value;                             // null: none
  bool preserve_unknown = false;                  // an object that may hold more than `properties`
  std::optional<int64_t> minimum, maximum;        // integers
  std::optional<int64_t> min_length, max_length;  // strings, in code points
  std::optional<int64_t> max_items, max_properties;
  std::string pattern;  // ECMAScript and RE2, anchored
  std::vector<std::string> enumeration;
  std::vector<std::string> required;
  std::string list_map_key;  // of an array: items are unique by this property
  std::vector<Property> properties;
  std::vector<Schema> items;       // of an array: exactly one
  std::vector<Schema> additional;  // additionalProperties of an object: one at most
};

struct Property {
  std::string name;
  Schema schema;
};

// Schema of the whole object (apiVersion, kind, metadata, spec, status). Built once; lives as long as the
// program.
const Schema& training_job_schema();

// As OpenAPI v3 in the CRD's manner, without descriptions and CEL rules.
Json to_openapi(const Schema& schema);

// `value` with the defaults of `schema` filled in where something is absent (or null), as an API server does
// it.
Json with_defaults(const Schema& schema, Json value);

}  // namespace coxswain
