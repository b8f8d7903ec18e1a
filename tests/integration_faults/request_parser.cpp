#include "tests/integration_faults/request_parser.h"

#include <algorithm>
#include <cctype>
#include <sstream>

namespace coxswain::testing {

namespace {

size_t content_length(std::string head) {
  std::ranges::transform(head, head.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::string field = "\r\ncontent-length:";
  const size_t at = head.find(field);
  return at == std::string::npos ? 0 : std::stoul(head.substr(at + field.size()));
}

}  // namespace

std::vector<RequestParser::Piece> RequestParser::feed(const std::string& bytes) {
  kept_ += bytes;
  std::vector<Piece> pieces;
  while (!kept_.empty()) {
    if (body_left_ > 0) {
      const size_t size = std::min(body_left_, kept_.size());
      pieces.push_back({std::nullopt, kept_.substr(0, size)});
      kept_.erase(0, size);
      body_left_ -= size;
      continue;
    }
    const size_t end = kept_.find("\r\n\r\n");
    if (end == std::string::npos) break;
    const std::string head = kept_.substr(0, end + 4);
    SeenRequest request;
    std::istringstream(head) >> request.method >> request.target;
    body_left_ = content_length(head);
    kept_.erase(0, head.size());
    pieces.push_back({request, head});
  }
  return pieces;
}

}  // namespace coxswain::testing
