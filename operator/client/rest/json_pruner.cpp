#include "operator/client/rest/json_pruner.h"

#include <algorithm>

namespace coxswain {

// Goes over the text once. Only what a path leads into is looked at member by member; all else is skipped.
class JsonPruner::Walk {
 public:
  explicit Walk(std::string_view text) : text_(text) {}

  bool value(const Step& step) {
    skip_space();
    if (peek() == '{') return object(step);
    if (peek() == '[') return array(step);
    return skip_value();
  }
  bool has_dropped() const { return kept_from_ > 0; }
  std::string result() {
    keep_until(text_.size());
    return std::move(out_);
  }

 private:
  bool object(const Step& step) {
    ++at_;
    skip_space();
    if (peek() == '}') return ++at_, true;
    bool is_first = true;  // of those that are kept
    for (size_t before = at_;; before = at_++) {
      skip_space();
      std::string_view name;
      if (!member_name(name)) return false;
      const Step* next = step.find(name);
      if (next != nullptr && next->is_dropped) {
        if (!drop(before, is_first)) return false;
      } else {
        if (!(next == nullptr ? skip_value() : value(*next))) return false;
        is_first = false;
      }
      skip_space();
      if (peek() == '}') return ++at_, true;
      if (peek() != ',') return false;
    }
  }

  // `before` is where its member begins, with the comma in front of it unless it is the object's first.
  bool drop(size_t before, bool is_first) {
    keep_until(before);
    if (!skip_value()) return false;
    skip_space();
    const bool takes_comma = is_first && peek() == ',';
    kept_from_ = takes_comma ? at_ + 1 : at_;
    return true;
  }

  bool array(const Step& step) {
    const Step* each = step.find("*");
    if (each == nullptr) return skip_value();
    ++at_;
    skip_space();
    if (peek() == ']') return ++at_, true;
    for (;; ++at_) {
      if (!value(*each)) return false;
      skip_space();
      if (peek() == ']') return ++at_, true;
      if (peek() != ',') return false;
    }
  }

  bool member_name(std::string_view& name) {
    const size_t begin = at_ + 1;
    if (peek() != '"' || !skip_string()) return false;
    name = text_.substr(begin, at_ - 1 - begin);
    skip_space();
    if (peek() != ':') return false;
    ++at_;
    skip_space();
    return true;
  }

  bool skip_value() {
    skip_space();
    int depth = 0;
    do {
      const size_t found = text_.find_first_of("\"{}[],", at_);
      if (found == std::string_view::npos) return depth == 0 && (at_ = text_.size(), true);
      at_ = found;
      const char c = text_[at_];
      if (c == '"') {
        if (!skip_string()) return false;
        continue;
      }
      if (depth == 0 && (c == ',' || c == '}' || c == ']')) return true;  // behind a number or a word
      depth += c == '{' || c == '[' ? 1 : 0;
      depth -= c == '}' || c == ']' ? 1 : 0;
      ++at_;
    } while (depth > 0);
    return true;
  }

  bool skip_string() {
    for (++at_;; at_ += 2) {
      at_ = text_.find_first_of("\"\\", at_);
      if (at_ == std::string_view::npos) return at_ = text_.size(), false;
      if (text_[at_] == '"') return ++at_, true;
    }
  }

  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  // What lies between kept_from_ and `end` is part of the result.
  void keep_until(size_t end) {
    if (end > kept_from_) out_ += text_.substr(kept_from_, end - kept_from_);
  }

  const std::string_view text_;
  size_t at_ = 0;
  size_t kept_from_ = 0;
  std::string out_;
};

const JsonPruner::Step* JsonPruner::Step::find(std::string_view member) const {
  const auto found =
      std::ranges::find_if(next, [&](const Step& step) { return step.name == member || step.name == "*"; });
  return found == next.end() ? nullptr : &*found;
}

JsonPruner::JsonPruner(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    Step* step = &root_;
    for (size_t begin = 0; begin <= path.size();) {
      const size_t end = std::min(path.find('/', begin), path.size());
      const std::string name = path.substr(begin, end - begin);
      const auto known = std::ranges::find(step->next, name, &Step::name);
      step = known != step->next.end() ? &*known : &step->next.emplace_back(Step{.name = name, .next = {}});
      begin = end + 1;
    }
    step->is_dropped = true;
  }
}

std::string JsonPruner::prune(std::string text) const {
  Walk walk(text);
  if (!walk.value(root_) || !walk.has_dropped()) return text;
  return walk.result();
}

}  // namespace coxswain
