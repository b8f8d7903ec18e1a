// What every object carries in metadata. Safe on any JSON: "" where the field isn't there or is no text.
#pragma once

#include <string>
#include <utility>

#include "operator/client/api_client.h"

namespace coxswain {

// Namespace ("" where the kind has none) and name: what tells the objects of one kind apart at one time.
using ObjectKey = std::pair<std::string, std::string>;

namespace metadata {

std::string text(const Json& object, const char* field);
std::string name(const Json& object);
std::string namespace_name(const Json& object);
std::string uid(const Json& object);
std::string resource_version(const Json& object);
ObjectKey key(const Json& object);
bool being_deleted(const Json& object);
bool has_finalizers(const Json& object);

// The owner reference with controller: true; null where there is none.
const Json& controller(const Json& object);

}  // namespace metadata
}  // namespace coxswain
