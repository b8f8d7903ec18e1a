#include "operator/client/label_selector.h"

#include <algorithm>
#include <regex>

namespace coxswain {

namespace {

std::string trim(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::vector<std::string> split_outside_parentheses(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (char c : text) {
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (c == ',' && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

}  // namespace

ApiResult<LabelSelector::Requirement> LabelSelector::parse_requirement(const std::string& text) {
  static const std::regex set(R"(^([\w./-]+)\s+(in|notin)\s*\(([^()]*)\)$)");
  static const std::regex equal(R"(^([\w./-]+)\s*(==|=|!=)\s*([\w.-]*)$)");
  static const std::regex exists(R"(^(!?)\s*([\w./-]+)$)");
  std::smatch m;
  if (std::regex_match(text, m, set)) {
    Requirement r{m[1], m[2] == "in" ? Op::kIn : Op::kNotIn, {}};
    for (const std::string& value : split_outside_parentheses(m[3])) r.values.push_back(trim(value));
    return r;
  }
  if (std::regex_match(text, m, equal)) return Requirement{m[1], m[2] == "!=" ? Op::kNotIn : Op::kIn, {m[3]}};
  if (std::regex_match(text, m, exists)) {
    return Requirement{m[2], m[1].length() ? Op::kNotExists : Op::kExists, {}};
  }
  return api_error(400, "BadRequest",
                   "unable to parse requirement: \"" + text + "\" is not a label requirement");
}

ApiResult<LabelSelector> LabelSelector::parse(const std::string& text) {
  LabelSelector selector;
  if (trim(text).empty()) return selector;
  for (const std::string& part : split_outside_parentheses(text)) {
    auto requirement = parse_requirement(trim(part));
    if (!requirement) return tl::unexpected(requirement.error());
    selector.requirements_.push_back(std::move(*requirement));
  }
  return selector;
}

bool LabelSelector::matches(const Json& object) const {
  const Json labels = object.value("/metadata/labels"_json_pointer, Json::object());
  return std::ranges::all_of(requirements_, [&](const Requirement& r) {
    const auto label = labels.find(r.key);
    const bool present = label != labels.end();
    if (r.op == Op::kExists) return present;
    if (r.op == Op::kNotExists) return !present;
    const bool in = present && std::ranges::find(r.values, label->get<std::string>()) != r.values.end();
    return r.op == Op::kIn ? in : !in;
  });
}

}  // namespace coxswain
