// Finds the requests in what an HTTP/1.1 client sends over one connection. Bodies are those that
// Content-Length announces: the operator's client sends no others.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace coxswain::testing {

struct SeenRequest {
  std::string method;
  std::string target;

  bool writes() const { return method != "GET"; }
};

class RequestParser {
 public:
  // Bytes to be passed on; where a request begins with them, its head is whole.
  struct Piece {
    std::optional<SeenRequest> head;
    std::string bytes;
  };
  // What can be passed on now; the beginning of a head is kept back.
  std::vector<Piece> feed(const std::string& bytes);

 private:
  std::string kept_;
  size_t body_left_ = 0;
};

}  // namespace coxswain::testing
