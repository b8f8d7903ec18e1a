#include "operator/client/rest/line_framer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace coxswain {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Framed {
  std::vector<std::string> lines;
  bool fits = true;
  size_t pending = 0;
};

Framed frame(const std::vector<std::string>& pieces, size_t max_line = 100) {
  LineFramer framer(max_line);
  Framed result;
  for (const std::string& piece : pieces) {
    result.fits = framer.feed(piece, [&](std::string line) { result.lines.push_back(std::move(line)); });
  }
  result.pending = framer.pending();
  return result;
}

TEST(LineFramer, CutsAtLineEnds) {
  EXPECT_THAT(frame({"a\nb\n"}).lines, ElementsAre("a", "b"));
  EXPECT_THAT(frame({"a\r\nb\r\n"}).lines, ElementsAre("a", "b"));
  EXPECT_THAT(frame({"a", "b\nc", "", "d\n"}).lines, ElementsAre("ab", "cd"));
  EXPECT_THAT(frame({"a\r", "\nb\n"}).lines, ElementsAre("a", "b"));
}

TEST(LineFramer, PassesEmptyLinesOver) {
  EXPECT_THAT(frame({"\n\r\na\n\n"}).lines, ElementsAre("a"));
}

TEST(LineFramer, KeepsALineWhoseEndHasNotCome) {
  const Framed framed = frame({"a\nhalf"});
  EXPECT_THAT(framed.lines, ElementsAre("a"));
  EXPECT_EQ(framed.pending, 4u);
}

TEST(LineFramer, ALineOfTheLongestLengthFits) {
  EXPECT_THAT(frame({std::string(100, 'x') + "\n"}).lines, ElementsAre(std::string(100, 'x')));
  EXPECT_THAT(frame({std::string(100, 'x') + "\r\n"}).lines, ElementsAre(std::string(100, 'x')));
}

TEST(LineFramer, ALongerOneEndsIt) {
  for (const std::string end : {"", "\n", "\r\n"}) {
    const Framed framed = frame({"a\n" + std::string(102, 'x') + end, "b\n"});
    EXPECT_FALSE(framed.fits);
    EXPECT_THAT(framed.lines, ElementsAre("a"));
    EXPECT_EQ(framed.pending, 0u);
  }
  EXPECT_FALSE(frame({std::string(101, 'x') + "\n"}).fits);
}

// However the network cuts the bytes, also within a character of UTF-8, the lines are the same; and memory is
// bounded by the longest line.
TEST(LineFramer, AnyCutGivesTheSameLines) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    std::vector<std::string> expected;
    const int lines = static_cast<int>(random() % 8);
    for (int i = 0; i < lines; ++i) {
      std::string line;
      for (int n = static_cast<int>(random() % 12); n > 0; --n) line += random() % 3 ? "é" : "a";
      text += line + (random() % 2 ? "\n" : "\r\n");
      if (!line.empty()) expected.push_back(line);
    }
    LineFramer framer(40);
    std::vector<std::string> got;
    for (size_t at = 0; at < text.size();) {
      const size_t size = 1 + random() % 5;
      ASSERT_TRUE(framer.feed(std::string_view(text).substr(at, size),
                              [&](std::string line) { got.push_back(std::move(line)); }));
      ASSERT_LE(framer.pending(), 41u);
      at += size;
    }
    EXPECT_EQ(got, expected);
  }
}

TEST(LineFramer, NoBytesAreTooStrange) {
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    LineFramer framer(16);
    for (int piece = 0; piece < 5; ++piece) {
      std::string bytes(random() % 20, '\0');
      for (char& c : bytes) c = static_cast<char>(random() % 4 ? random() : '\n');
      framer.feed(bytes, [](const std::string& line) {
        EXPECT_LE(line.size(), 16u);
        EXPECT_EQ(line.find('\n'), std::string::npos);
      });
      ASSERT_LE(framer.pending(), 17u);
    }
  }
}

}  // namespace
}  // namespace coxswain
