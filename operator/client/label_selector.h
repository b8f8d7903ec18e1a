// Label selectors as the API's query parameter spells them.
#pragma once

#include <string>
#include <vector>

#include "operator/client/api_client.h"

namespace coxswain {

class LabelSelector {
 public:
  // 400 BadRequest when the text is no selector. "" selects everything.
  static ApiResult<LabelSelector> parse(const std::string& text);

  // `object` is a whole object; its metadata.labels count.
  bool matches(const Json& object) const;

 private:
  enum class Op { kIn, kNotIn, kExists, kNotExists };
  struct Requirement {
    std::string key;
    Op op;
    std::vector<std::string> values;
  };
  static ApiResult<Requirement> parse_requirement(const std::string& text);

  std::vector<Requirement> requirements_;
};

}  // namespace coxswain
