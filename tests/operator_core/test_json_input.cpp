#include <gtest/gtest.h>

#include <limits>

#include "operator/api/json_input.h"
#include "operator/api/parse.h"

namespace coxswain {
namespace {

std::string nested(const std::string& open, const std::string& inner, const std::string& close, int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += open;
  text += inner;
  for (int i = 0; i < depth; ++i) text += close;
  return text;
}

int depth_of(const Json& value) {
  int depth = 0;
  for (const Json* at = &value; at->is_structured() && !at->empty(); at = &*at->begin()) ++depth;
  return depth;
}

TEST(JsonInput, IsReadAsItIsUpToTheDepthThatIsTaken) {
  const std::string text = nested("{\"a\":", "\"{[\\\"[\"", "}", kMaxJsonDepth);
  EXPECT_EQ(parse_json(text), Json::parse(text));
  EXPECT_TRUE(parse_json("{\"a\":").is_discarded());
  EXPECT_TRUE(parse_json("").is_discarded());
  EXPECT_TRUE(parse_json(std::string(100'000, '[')).is_discarded());
}

// Found by fuzzing's question: a pod that answers a hundred kilobytes of brackets would have ended the
// operator.
TEST(JsonInput, WhatIsNestedDeeperIsLeftOut) {
  for (const auto& [open, close] : {std::pair{"{\"a\":", "}"}, {"[", "]"}}) {
    const Json value =
        parse_json("{\"before\":1,\"deep\":" + nested(open, "1", close, 1'000'000) + ",\"after\":2}");
    ASSERT_TRUE(value.is_object());
    EXPECT_EQ(value["before"], 1);
    EXPECT_EQ(value["after"], 2);
    EXPECT_LE(depth_of(value["deep"]), kMaxJsonDepth);
    const Json copy = value;
    EXPECT_EQ(copy, value);
  }
}

// Found by fuzzing: a manifest saved as Latin-1 ended the program where it was first written as JSON.
TEST(JsonInput, TextThatIsNotUtf8) {
  for (const std::string good : {"", "a", "\xc3\xa9", "\xe2\x82\xac", "\xed\x9f\xbf", "\xef\xbf\xbd",
                                 "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(not_utf8_at(good), std::nullopt) << good;
  }
  for (const std::string bad : {"\x80", "\xe9", "\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80",
                                "\xf4\x90\x80\x80", "\xf0\x9f\x98", "\xff"}) {
    EXPECT_EQ(not_utf8_at("ab" + bad), 2U);
    EXPECT_EQ(not_utf8_at("ab" + bad + "c"), 2U);
  }
  const auto latin1 = load_yaml("a: b\nc: \"caf\xe9\"\n", "job.yaml");
  ASSERT_FALSE(latin1);
  EXPECT_EQ(latin1.error().message, "job.yaml:2: is not UTF-8 text; save it in that encoding");
}

TEST(JsonInput, WholeNumbers) {
  EXPECT_EQ(whole_number(3), 3);
  EXPECT_EQ(whole_number(-3), -3);
  EXPECT_EQ(whole_number(2.0), 2);
  EXPECT_EQ(whole_number(-9223372036854775808.0), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(whole_number(std::numeric_limits<uint64_t>::max()), std::nullopt);
  EXPECT_EQ(whole_number(9223372036854775808.0), std::nullopt);
  EXPECT_EQ(whole_number(1e300), std::nullopt);
  EXPECT_EQ(whole_number(std::numeric_limits<double>::quiet_NaN()), std::nullopt);
  EXPECT_EQ(whole_number(2.5), std::nullopt);
  for (const Json& other : {Json(), Json("3"), Json(true), Json::array({3})})
    EXPECT_EQ(whole_number(other), std::nullopt);
}

TEST(JsonInput, AWholeNumberWithAPointIsAnIntegerOfTheSpec) {
  const Json object = {{"metadata", {{"name", "j"}}},
                       {"spec", {{"nodes", 2.0}, {"runPolicy", {{"backoffLimit", 5.0}}}}}};
  EXPECT_EQ(parse_training_job(object).spec.nodes, 2);
  EXPECT_EQ(parse_training_job(object).spec.run_policy.backoff_limit, 5);
}

// Found by fuzzing: zero times infinity.
TEST(Quantities, AreFinite) {
  for (const char* text : {"0e999999999", "1e999999999", "-1E400"})
    EXPECT_EQ(parse_quantity(text), std::nullopt) << text;
  EXPECT_EQ(parse_quantity("1e-999999999"), 0);
  EXPECT_EQ(parse_quantity("0Ei"), 0);
}

TEST(Times, NothingIsReadFromWhatNoTimeLooksLike) {
  EXPECT_EQ(parse_time("2026-01-01T00:00:00." + std::string(200'000, '0') + "Z"), std::nullopt);
  EXPECT_EQ(parse_time("2026-01-01T00:00:00." + std::string(400, '0') + "1Z"), std::nullopt);
  EXPECT_EQ(parse_time("2026-01-01T00:00:00+99:99"), std::nullopt);
  EXPECT_EQ(parse_time("0000-01-01T00:00:00+14:00"), std::nullopt);
  EXPECT_EQ(parse_time("9999-12-31T23:59:59-14:00"), std::nullopt);
}

}  // namespace
}  // namespace coxswain
