#include "operator/client/rest/json_pruner.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace coxswain {
namespace {

using Json = nlohmann::json;

Json pruned(const std::vector<std::string>& paths, const std::string& text) {
  return Json::parse(JsonPruner(paths).prune(text));
}

TEST(JsonPruner, LeavesOutAMemberWhereverItStandsInItsObject) {
  const std::vector<std::string> paths = {"m/x"};
  EXPECT_EQ(pruned(paths, R"({"m":{"x":[1,{"y":"}"}],"a":1,"b":2},"x":3})"),
            Json::parse(R"({"m":{"a":1,"b":2},"x":3})"));
  EXPECT_EQ(pruned(paths, R"({"m":{"a":1,"x":{"y":[]},"b":2}})"), Json::parse(R"({"m":{"a":1,"b":2}})"));
  EXPECT_EQ(pruned(paths, R"({"m":{"a":1,"x":-1.5e3}})"), Json::parse(R"({"m":{"a":1}})"));
  EXPECT_EQ(pruned(paths, R"({"m":{"x":null}})"), Json::parse(R"({"m":{}})"));
  EXPECT_EQ(pruned(paths, R"({"m":{}})"), Json::parse(R"({"m":{}})"));
}

TEST(JsonPruner, LeavesOutSeveralMembersOneAfterAnother) {
  const std::vector<std::string> paths = {"a", "b", "d"};
  EXPECT_EQ(pruned(paths, R"({"a":1,"b":2,"c":3,"d":4})"), Json::parse(R"({"c":3})"));
  EXPECT_EQ(pruned(paths, R"({"a":1,"b":2})"), Json::object());
  EXPECT_EQ(pruned(paths, R"({"c":3,"a":1,"b":2,"e":5})"), Json::parse(R"({"c":3,"e":5})"));
}

TEST(JsonPruner, StarIsEveryItemAndEveryMember) {
  EXPECT_EQ(pruned({"items/*/x"}, R"({"items":[{"x":1,"y":1},{"y":2,"x":[{}]},{},7,[]]})"),
            Json::parse(R"({"items":[{"y":1},{"y":2},{},7,[]]})"));
  EXPECT_EQ(pruned({"of/*/x"}, R"({"of":{"a":{"x":1},"b":{"x":2,"z":[]}}})"),
            Json::parse(R"({"of":{"a":{},"b":{"z":[]}}})"));
}

TEST(JsonPruner, IsNotMisledByWhatStandsInStrings) {
  const std::string text = R"({"a":"\"x\":{","b\"":"}],\\","x":"\\\"","c":"x"})";
  Json expected = Json::parse(text);
  expected.erase("x");
  EXPECT_EQ(pruned({"x"}, text), expected);
}

TEST(JsonPruner, KeepsTheMemberOfThatNameElsewhere) {
  const std::string text = R"({"spec":{"config":{"metadata":{"managedFields":[1]}}},"managedFields":2})";
  EXPECT_EQ(pruned({"metadata/managedFields"}, text), Json::parse(text));
}

TEST(JsonPruner, TakesSpacesAsTheyCome) {
  EXPECT_EQ(pruned({"m/x"}, "{ \"m\" : {\n \"x\" : [ 1 , 2 ] ,\t\"y\" : 2 } , \"z\":3 }\r\n"),
            Json::parse(R"({"m":{"y":2},"z":3})"));
}

TEST(JsonPruner, WhatIsNoJsonStaysNone) {
  for (const std::string bad :
       {"", "{", "[", "{\"x\"", "{\"x\":", "{\"x\":\"", "{\"a\":1,\"x\":{\"y\":[", "{\"m\":{\"x\":1,",
        "{\"m\":{,}", "{1:2}", "{\"m\":{\"x\":1}}}", "{\"x\":1}{", "<html>"}) {
    EXPECT_FALSE(Json::accept(JsonPruner({"x", "m/x"}).prune(bad))) << bad;
  }
}

// Every object of two levels over a few members: pruning the text and pruning the parsed object agree.
TEST(JsonPruner, AgreesWithTakingOutAfterwards) {
  const std::vector<std::string> members = {"\"x\":1", "\"y\":[{\"x\":2}]", "\"m\":{\"x\":3,\"k\":4}",
                                            "\"m2\":{}"};
  const JsonPruner pruner({"x", "m/x", "y/*/x"});
  for (unsigned chosen = 0; chosen < 16; ++chosen) {
    std::string text = "{";
    for (unsigned i = 0; i < 4; ++i) {
      if ((chosen >> i & 1U) != 0) text += (text.size() > 1 ? "," : "") + members[i];
    }
    text += "}";
    Json expected = Json::parse(text);
    expected.erase("x");
    if (expected.contains("m")) expected["m"].erase("x");
    if (expected.contains("y")) expected["y"][0].erase("x");
    EXPECT_EQ(Json::parse(pruner.prune(text)), expected) << text;
  }
}

}  // namespace
}  // namespace coxswain
