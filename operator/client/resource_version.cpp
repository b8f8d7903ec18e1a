#include "operator/client/resource_version.h"

namespace coxswain {

namespace {

bool is_number(const std::string& version) {
  return !version.empty() && version.front() != '0' &&
         version.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

std::partial_ordering compare_versions(const std::string& a, const std::string& b) {
  if (a == b) return std::partial_ordering::equivalent;
  if (!is_number(a) || !is_number(b)) return std::partial_ordering::unordered;
  // Of any length: without leading zeros the longer one is the greater.
  if (a.size() != b.size()) return a.size() <=> b.size();
  return a.compare(b) <=> 0;
}

}  // namespace coxswain
