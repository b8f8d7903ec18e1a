#include "operator/controller/wake_rules.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "contract/contract.h"

namespace coxswain {

namespace {

using Fields = std::initializer_list<std::string_view>;

bool is_in(Fields fields, const std::string& field) {
  return std::ranges::find(fields, std::string_view(field)) != fields.end();
}

size_t count_but(const Json& object, Fields ignored) {
  size_t count = 0;
  for (const auto& [field, _] : object.items()) count += is_in(ignored, field) ? 0 : 1;
  return count;
}

// Without copying either.
bool same_but_for(const Json& a, const Json& b, Fields ignored) {
  if (!a.is_object() || !b.is_object()) return a == b;
  if (count_but(a, ignored) != count_but(b, ignored)) return false;
  for (const auto& [field, value] : a.items()) {
    if (is_in(ignored, field)) continue;
    const auto other = b.find(field);
    if (other == b.end() || *other != value) return false;
  }
  return true;
}

bool same_metadata(const Json& a, const Json& b) {
  return same_but_for(a["metadata"], b["metadata"], {"resourceVersion", "managedFields"});
}

}  // namespace

bool job_needs_pass(const Json& before, const Json& after) {
  if (before.is_null() || after.is_null()) return true;
  return !same_but_for(before, after, {"metadata", "status"}) || !same_metadata(before, after);
}

bool child_needs_pass(const Json& before, const Json& after) {
  if (before.is_null() || after.is_null()) return true;
  return !same_but_for(before, after, {"metadata"}) || !same_metadata(before, after);
}

std::optional<ObjectKey> controlling_job(const Json& object) {
  const Json& owner = metadata::controller(object);
  if (!owner.is_object() || owner.value("kind", "") != contract::kKind) return std::nullopt;
  return ObjectKey{metadata::namespace_name(object), owner.value("name", "")};
}

}  // namespace coxswain
