#include "operator/progress/http_answer.h"

#include <gtest/gtest.h>

#include <string>

namespace coxswain {
namespace {

using State = HttpAnswer::State;
constexpr size_t kLimit = 200;

std::string body_of(const std::string& text, bool ended) {
  HttpAnswer answer(kLimit);
  State state = answer.take(text);
  if (ended && state == State::kMore) state = answer.end();
  return state == State::kComplete ? std::string(answer.body()) : "nothing";
}

TEST(HttpAnswer, IsCompleteWithItsLength) {
  EXPECT_EQ(body_of("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", false), "{}");
  EXPECT_EQ(body_of("HTTP/1.1 200 OK\r\ncontent-length:2 \r\nX: y\r\n\r\n{}", false), "{}");
  EXPECT_EQ(body_of("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false), "");
}

TEST(HttpAnswer, OrWithTheConnection) {
  EXPECT_EQ(body_of("HTTP/1.0 200 OK\r\n\r\n{}", true), "{}");
  EXPECT_EQ(body_of("HTTP/1.0 200 OK\r\n\r\n{}", false), "nothing");
}

TEST(HttpAnswer, ComesInAnyPieces) {
  const std::string whole = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{\"a\":1}";
  HttpAnswer answer(kLimit);
  for (size_t i = 0; i + 1 < whole.size(); ++i) ASSERT_EQ(answer.take(whole.substr(i, 1)), State::kMore) << i;
  EXPECT_EQ(answer.take(whole.substr(whole.size() - 1)), State::kComplete);
  EXPECT_EQ(answer.body(), "{\"a\":1}");
}

TEST(HttpAnswer, AnythingElseIsNothing) {
  for (const char* text : {
           "",
           "HTTP/1.1 200 OK\r\n",
           "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}",  // cut
           "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{}",
           "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}",
           "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n{}",
           "HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n{}",
           "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n{}",
           "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
           "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n{}",
           "HTTP/1.1 302 Found\r\nLocation: http://x/\r\n\r\n{}",
           "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}",
           "HTTP/1.1 2000 OK\r\n\r\n{}",
           "HTTP/2 200\r\n\r\n{}",
           "SSH-2.0-OpenSSH\r\n\r\n",
           "\r\n\r\n{}",
       }) {
    EXPECT_EQ(body_of(text, true), "nothing") << text;
  }
}

TEST(HttpAnswer, NoMoreIsKeptThanTheLimit) {
  HttpAnswer answer(kLimit);
  const std::string piece = "HTTP/1.1 200 OK\r\nX: " + std::string(79, 'a');
  EXPECT_EQ(answer.take(piece), State::kMore);
  EXPECT_EQ(answer.take(std::string(kLimit - piece.size(), 'a')), State::kMore);
  EXPECT_EQ(answer.take("a"), State::kBad);
}

}  // namespace
}  // namespace coxswain
