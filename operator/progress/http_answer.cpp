#include "operator/progress/http_answer.h"

#include <algorithm>
#include <charconv>

namespace coxswain {

namespace {

bool is_named(std::string_view line, std::string_view lower_case_name) {
  if (line.size() <= lower_case_name.size() || line[lower_case_name.size()] != ':') return false;
  return std::equal(lower_case_name.begin(), lower_case_name.end(), line.begin(),
                    [](char want, char got) { return want == (got >= 'A' && got <= 'Z' ? got + 32 : got); });
}

std::string_view value_of(std::string_view line) {
  line.remove_prefix(line.find(':') + 1);
  const auto begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(" \t") - begin + 1);
}

}  // namespace

HttpAnswer::State HttpAnswer::take(std::string_view bytes) {
  if (bytes.size() > max_bytes_ - text_.size()) return State::kBad;
  text_ += bytes;
  return look();
}

HttpAnswer::State HttpAnswer::look() {
  if (body_begin_ == 0) {
    const size_t end = text_.find("\r\n\r\n");
    if (end == std::string::npos) return State::kMore;
    body_begin_ = end + 4;
    if (!read_head(std::string_view(text_).substr(0, end + 2))) return State::kBad;
  }
  if (!length_) return State::kMore;
  const size_t size = text_.size() - body_begin_;
  if (size > *length_) return State::kBad;
  return size == *length_ ? State::kComplete : State::kMore;
}

HttpAnswer::State HttpAnswer::end() {
  return body_begin_ != 0 && !length_ ? State::kComplete : State::kBad;
}

bool HttpAnswer::read_head(std::string_view head) {
  if (!head.starts_with("HTTP/1.1 200 ") && !head.starts_with("HTTP/1.0 200 ")) return false;
  for (size_t begin = head.find("\r\n") + 2; begin < head.size();) {
    const size_t end = head.find("\r\n", begin);
    const std::string_view line = head.substr(begin, end - begin);
    begin = end + 2;
    if (is_named(line, "transfer-encoding") || is_named(line, "content-encoding")) return false;
    if (!is_named(line, "content-length")) continue;
    const std::string_view value = value_of(line);
    size_t length = 0;
    const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), length);
    const bool whole = error == std::errc() && stop == value.data() + value.size();
    if (!whole || length > max_bytes_ || (length_ && *length_ != length)) return false;
    length_ = length;
  }
  return true;
}

}  // namespace coxswain
