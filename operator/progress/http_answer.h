// Just enough of an HTTP/1.1 answer for one that the agent gives: a body with its length, or to the end of
// the connection. Pure. A pod can answer anything, so nothing is kept beyond the limit, and no library that
// follows, decodes or collects is between it and the operator.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace coxswain {

class HttpAnswer {
 public:
  // Of head and body together.
  explicit HttpAnswer(size_t max_bytes) : max_bytes_(max_bytes) {}

  enum class State { kMore, kComplete, kBad };
  State take(std::string_view bytes);
  // The other side has closed the connection.
  State end();

  // Once complete: of an answer 200.
  std::string_view body() const { return std::string_view(text_).substr(body_begin_); }

 private:
  State look();
  bool read_head(std::string_view head);

  const size_t max_bytes_;
  std::string text_;
  size_t body_begin_ = 0;  // 0: the head is not complete
  std::optional<size_t> length_;
};

}  // namespace coxswain
