#include "operator/api/schema_check.h"

#include <algorithm>
#include <cmath>
#include <regex>
#include <set>

namespace coxswain {
namespace {

std::string join(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

const char* described(FieldType type) {
  switch (type) {
    case FieldType::kObject:
      return "a mapping";
    case FieldType::kArray:
      return "a list";
    case FieldType::kString:
      return "a string";
    case FieldType::kInteger:
      return "a whole number";
    case FieldType::kNumber:
      return "a number";
    case FieldType::kBoolean:
      return "true or false";
    case FieldType::kQuantity:
      return "a quantity such as 2, 500m or 8Gi";
  }
  return "";
}

bool has_type(FieldType type, const Json& value) {
  switch (type) {
    case FieldType::kObject:
      return value.is_object();
    case FieldType::kArray:
      return value.is_array();
    case FieldType::kString:
      return value.is_string();
    case FieldType::kInteger:
      return value.is_number_integer() ||
             (value.is_number_float() && std::nearbyint(value.get<double>()) == value.get<double>());
    case FieldType::kNumber:
      return value.is_number();
    case FieldType::kBoolean:
      return value.is_boolean();
    case FieldType::kQuantity:
      return value.is_number_integer() || value.is_string();
  }
  return false;
}

int64_t code_points(const std::string& text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

class Checker {
 public:
  explicit Checker(std::vector<Problem>& problems) : problems_(problems) {}

  void check(const Schema& schema, const Json& value, const std::string& path) {
    if (value.is_null() && !schema.default_value.is_null()) return;  // the default takes its place
    if (!has_type(schema.type, value)) {
      add(path, std::string("must be ") + described(schema.type) + ", was " + shown(value));
      return;
    }
    switch (schema.type) {
      case FieldType::kObject:
        return check_object(schema, value, path);
      case FieldType::kArray:
        return check_array(schema, value, path);
      case FieldType::kInteger:
        return check_integer(schema, value, path);
      case FieldType::kString:
        return check_string(schema, value.get_ref<const std::string&>(), path);
      case FieldType::kQuantity:
        if (value.is_string()) check_string(schema, value.get_ref<const std::string&>(), path);
        return;
      case FieldType::kNumber:
      case FieldType::kBoolean:
        return;
    }
  }

 private:
  void add(const std::string& path, std::string message) { problems_.push_back({path, std::move(message)}); }

  void check_object(const Schema& schema, const Json& value, const std::string& path) {
    const std::string prefix = path.empty() ? "" : path + ".";
    for (const std::string& name : schema.required) {
      if (!value.contains(name)) add(prefix + name, "must be given");
    }
    if (schema.max_properties && static_cast<int64_t>(value.size()) > *schema.max_properties) {
      add(path, "must have at most " + std::to_string(*schema.max_properties) + " keys, had " +
                    std::to_string(value.size()));
    }
    for (const auto& [name, property] : schema.properties) {
      if (value.contains(name)) check(property, value[name], prefix + name);
    }
    for (const auto& [name, entry] : value.items()) {
      if (!schema.additional.empty()) {
        check(schema.additional.front(), entry, prefix + name);
      } else if (!schema.preserve_unknown && !is_property(schema, name)) {
        report_unknown(schema, name, prefix);
      }
    }
  }

  static bool is_property(const Schema& schema, const std::string& name) {
    return std::any_of(schema.properties.begin(), schema.properties.end(),
                       [&](const auto& property) { return property.name == name; });
  }

  void report_unknown(const Schema& schema, const std::string& name, const std::string& prefix) {
    std::vector<std::string> names;
    for (const auto& property : schema.properties) names.push_back(property.name);
    const std::string near = nearest_name(name, names);
    add(prefix + name, "is not a field" + (near.empty() ? ": the fields here are " + join(names)
                                                        : "; did you mean " + near + "?"));
  }

  void check_array(const Schema& schema, const Json& value, const std::string& path) {
    if (schema.max_items && static_cast<int64_t>(value.size()) > *schema.max_items) {
      add(path, "must have at most " + std::to_string(*schema.max_items) + " items, had " +
                    std::to_string(value.size()));
    }
    std::set<std::string> seen;
    for (size_t i = 0; i < value.size(); ++i) {
      const std::string item = path + "[" + std::to_string(i) + "]";
      check(schema.items.front(), value[i], item);
      if (schema.list_map_key.empty() || !value[i].is_object()) continue;
      const Json key = value[i].value(schema.list_map_key, Json());
      if (key.is_string() && !seen.insert(key.get<std::string>()).second) {
        add(item, "has the " + schema.list_map_key + " " + shown(key) + " of an earlier item");
      }
    }
  }

  void check_integer(const Schema& schema, const Json& value, const std::string& path) {
    const double number = value.get<double>();
    const bool low = schema.minimum && number < static_cast<double>(*schema.minimum);
    const bool high = schema.maximum && number > static_cast<double>(*schema.maximum);
    if (!low && !high) return;
    add(path, low ? "must be at least " + std::to_string(*schema.minimum) + ", was " + shown(value)
                  : "must be at most " + std::to_string(*schema.maximum) + ", was " + shown(value));
  }

  void check_string(const Schema& schema, const std::string& text, const std::string& path) {
    const int64_t length = code_points(text);
    if (schema.min_length && length < *schema.min_length) {
      add(path, "must not be empty");
    } else if (schema.max_length && length > *schema.max_length) {
      add(path, "must have at most " + std::to_string(*schema.max_length) + " characters, had " +
                    std::to_string(length));
    } else if (!schema.enumeration.empty() && std::find(schema.enumeration.begin(), schema.enumeration.end(),
                                                        text) == schema.enumeration.end()) {
      add(path, "must be one of " + join(schema.enumeration) + ", was " + shown(text));
    } else if (!schema.pattern.empty() && schema.pattern != "date-time" &&
               !std::regex_match(text, std::regex(schema.pattern))) {
      add(path, pattern_message(schema, text));
    }
  }

  static std::string pattern_message(const Schema& schema, const std::string& text) {
    if (schema.type == FieldType::kQuantity)
      return "must be a quantity such as 2, 500m or 8Gi, was " + shown(text);
    if (schema.pattern.find("\\.") == std::string::npos) {
      return "must be lower-case letters, digits and '-', begin with a letter and end with a letter or digit "
             "(DNS-1035), was " +
             shown(text);
    }
    return "must be lower-case letters, digits, '-' and '.', begin and end with a letter or digit "
           "(DNS-1123), was " +
           shown(text);
  }

  std::vector<Problem>& problems_;
};

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (std::tolower(a[i - 1]) == std::tolower(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_name(const std::string& name, const std::vector<std::string>& names) {
  if (name.size() > 100) return "";
  std::string best;
  size_t best_distance = std::max<size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : names) {
    const size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

void check_schema(const Schema& schema, const Json& value, const std::string& path,
                  std::vector<Problem>& problems) {
  Checker(problems).check(schema, value, path);
}

}  // namespace coxswain
