// The order of resource versions. Servers from Kubernetes 1.35 on promise that versions of one resource are
// whole numbers that rise (KEP-5504); all servers on etcd have always kept to it.
#pragma once

#include <compare>
#include <string>

namespace coxswain {

// Versions of objects, lists and bookmarks of one resource. Unordered where one of two different ones is no
// such number ("", "0" and anything opaque): then nothing can be said.
std::partial_ordering compare_versions(const std::string& a, const std::string& b);

}  // namespace coxswain
