// The words that the tables of schema.cpp and pod_schema.cpp are written in.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "operator/api/schema.h"

namespace coxswain {

using Properties = std::vector<Property>;

inline constexpr int64_t kMaxInt = 2147483647;

inline Schema integer(int64_t minimum, int64_t maximum = kMaxInt, Json default_value = nullptr) {
  Schema schema;
  schema.type = FieldType::kInteger;
  schema.minimum = minimum;
  schema.maximum = maximum;
  schema.default_value = std::move(default_value);
  return schema;
}

inline Schema any_integer() {
  Schema schema;
  schema.type = FieldType::kInteger;
  return schema;
}

inline Schema text(std::optional<int64_t> min_length = {}, std::optional<int64_t> max_length = {}) {
  Schema schema;
  schema.type = FieldType::kString;
  schema.min_length = min_length;
  schema.max_length = max_length;
  return schema;
}

inline Schema boolean(Json default_value = nullptr) {
  Schema schema;
  schema.type = FieldType::kBoolean;
  schema.default_value = std::move(default_value);
  return schema;
}

inline Schema object(Properties properties, Json default_value = nullptr) {
  Schema schema;
  schema.properties = std::move(properties);
  schema.default_value = std::move(default_value);
  return schema;
}

inline Schema open_object(Properties properties = {}, std::vector<std::string> required = {}) {
  Schema schema = object(std::move(properties));
  schema.preserve_unknown = true;
  schema.required = std::move(required);
  return schema;
}

inline Schema list(Schema item, int64_t max_items, std::string map_key = "") {
  Schema schema;
  schema.type = FieldType::kArray;
  schema.max_items = max_items;
  schema.list_map_key = std::move(map_key);
  schema.items.push_back(std::move(item));
  return schema;
}

}  // namespace coxswain
