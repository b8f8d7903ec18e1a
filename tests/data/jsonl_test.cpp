#include "runtime/data/jsonl.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/data/tiny_model.h"

namespace coxswain {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

struct Read {
  std::vector<std::pair<int64_t, std::string>> rows;
  std::string error;
};

Read read(std::string_view content) {
  TemporaryFolder folder;
  Read read;
  const auto done =
      for_each_json_line(folder.write("d.jsonl", content), [&](int64_t line, const OrderedJson& row) {
        read.rows.emplace_back(line, row.dump());
        return Result<void>();
      });
  if (!done) read.error = done.error().message;
  return read;
}

TEST(Jsonl, ReadsLinesAndSkipsBlankOnes) {
  const auto result = read("\xEF\xBB\xBF{\"b\": 1, \"a\": 2}\r\n\n  \n{\"c\": \"\\u00fc\"}");
  EXPECT_EQ(result.error, "");
  EXPECT_THAT(result.rows, ElementsAre(Pair(1, "{\"b\":1,\"a\":2}"), Pair(4, "{\"c\":\"ü\"}")));
  EXPECT_THAT(read("").rows, ElementsAre());
}

TEST(Jsonl, NamesTheBrokenLine) {
  const auto result = read("{\"a\": 1}\n{\"a\": 1\n{\"a\": 1}\n");
  EXPECT_EQ(result.rows.size(), 1u);
  EXPECT_THAT(result.error, AllOf(HasSubstr("d.jsonl line 2 is not valid JSON at column 8: "),
                                  HasSubstr("unexpected end of input"), Not(HasSubstr("json.exception"))));
  EXPECT_THAT(read("{\"a\": 1} x").error, HasSubstr("line 1 is not valid JSON at column 10"));
  EXPECT_THAT(read("[1]").error, HasSubstr("line 1 must be a JSON object, but is a list."));
}

TEST(Jsonl, RefusesALineThatIsNestedWithoutEnd) {
  const auto nested = [](int depth) {
    return "{\"a\": " + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_THAT(read(nested(100000)).error, HasSubstr("line 1 is nested deeper than 100 levels."));
  EXPECT_EQ(read(nested(99)).error, "");
  EXPECT_EQ(read(R"({"a": "\"[[[", "b": ")" + std::string(200, '[') + "\"}").error, "");
}

TEST(Jsonl, NamesTheByteThatIsNoUtf8) {
  EXPECT_THAT(read("{\"a\": 1}\n{\"a\": \"x\xFFy\"}\n").error,
              HasSubstr("d.jsonl line 2 is not valid UTF-8 at byte 9"));
}

TEST(Jsonl, StopsAtTheUsersFailure) {
  TemporaryFolder folder;
  int calls = 0;
  const auto done = for_each_json_line(folder.write("d.jsonl", "{}\n{}\n"), [&](int64_t, const OrderedJson&) {
    ++calls;
    return Result<void>(bad_input("enough"));
  });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "enough");
  EXPECT_EQ(calls, 1);
}

TEST(Jsonl, SaysThatAFileIsNotThere) {
  const auto done =
      for_each_json_line("/nowhere/d.jsonl", [](int64_t, const OrderedJson&) { return Result<void>(); });
  EXPECT_THAT(done.error().message, HasSubstr("Can't read /nowhere/d.jsonl: No such file"));
}

TEST(FindInvalidUtf8, KnowsTheRules) {
  EXPECT_EQ(find_invalid_utf8("plain, long enough for eight; ü € 🙂 \xEE\x80\x80 \xF4\x8F\xBF\xBF"),
            std::nullopt);
  const std::pair<std::string, size_t> bad[] = {{"\x80", 0},
                                                {"a\xC0\x80", 1},
                                                {"ab\xC3", 2},
                                                {"\xE2\x82", 0},
                                                {"\xE0\x80\x80", 0},
                                                {"\xED\xA0\x80", 0},
                                                {"\xF0\x80\x80\x80", 0},
                                                {"\xF4\x90\x80\x80", 0},
                                                {"\xF5\x80\x80\x80", 0},
                                                {"12345678\xFF", 8},
                                                {"1234567\xC3(", 7}};
  for (const auto& [text, byte] : bad) EXPECT_EQ(find_invalid_utf8(text), byte) << text;
}

}  // namespace
}  // namespace coxswain
