#include "operator/client/metadata.h"

namespace coxswain::metadata {

namespace {

const Json& at(const Json& object, const char* field) {
  static const Json null;
  if (!object.is_object()) return null;
  const auto found = object.find(field);
  return found == object.end() ? null : *found;
}

}  // namespace

std::string text(const Json& object, const char* field) {
  const Json& value = at(at(object, "metadata"), field);
  return value.is_string() ? value.get<std::string>() : "";
}

std::string name(const Json& object) {
  return text(object, "name");
}
std::string namespace_name(const Json& object) {
  return text(object, "namespace");
}
std::string uid(const Json& object) {
  return text(object, "uid");
}
std::string resource_version(const Json& object) {
  return text(object, "resourceVersion");
}
ObjectKey key(const Json& object) {
  return {namespace_name(object), name(object)};
}

bool being_deleted(const Json& object) {
  return !at(at(object, "metadata"), "deletionTimestamp").is_null();
}

bool has_finalizers(const Json& object) {
  const Json& finalizers = at(at(object, "metadata"), "finalizers");
  return finalizers.is_array() && !finalizers.empty();
}

const Json& controller(const Json& object) {
  static const Json null;
  const Json& owners = at(at(object, "metadata"), "ownerReferences");
  if (!owners.is_array()) return null;
  for (const Json& owner : owners) {
    if (at(owner, "controller") == true) return owner;
  }
  return null;
}

}  // namespace coxswain::metadata
