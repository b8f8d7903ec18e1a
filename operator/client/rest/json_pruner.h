// Cuts members out of JSON text before it is parsed. More than half of a pod as a server sends it is
// managedFields and parts of the spec that nobody here reads: to skip over text is many times cheaper than to
// make objects of it and take them apart again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace coxswain {

class JsonPruner {
 public:
  // Members that are left out, as "metadata/managedFields" or "spec/containers/*/env"; * is every item or
  // member.
  explicit JsonPruner(const std::vector<std::string>& paths);

  // The same JSON without them. What is left out isn't checked; text that is no JSON otherwise stays none.
  std::string prune(std::string text) const;

 private:
  struct Step {
    std::string name;
    bool is_dropped = false;
    std::vector<Step> next;

    const Step* find(std::string_view member) const;
  };
  class Walk;

  Step root_;
};

}  // namespace coxswain
