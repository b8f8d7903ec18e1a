#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "operator/api/parse.h"

namespace coxswain {
namespace {

Json loaded(const std::string& text) {
  auto documents = load_yaml(text, "job.yaml");
  if (!documents) return "failed: " + documents.error().message;
  return documents->empty() ? Json() : documents->front();
}

std::string refusal(const std::string& text) {
  auto documents = load_yaml(text, "job.yaml");
  return documents ? "accepted" : documents.error().message;
}

TEST(LoadYaml, PlainScalarsByTheCoreSchema) {
  const std::pair<const char*, Json> cases[] = {{"1", 1},
                                                {"-7", -7},
                                                {"+3", 3},
                                                {"0x1F", 31},
                                                {"0o17", 15},
                                                {"1.5", 1.5},
                                                {"1e-5", 1e-5},
                                                {"5e-05", 5e-5},
                                                {".5", 0.5},
                                                {"1.", 1.0},
                                                {"true", true},
                                                {"False", false},
                                                {"null", nullptr},
                                                {"~", nullptr},
                                                {"", nullptr},
                                                {"yes", "yes"},
                                                {"off", "off"},
                                                {"012", "012"},
                                                {"1_000", "1_000"},
                                                {"12:30", "12:30"},
                                                {"a b", "a b"},
                                                {"1.2.3", "1.2.3"},
                                                {"0", 0},
                                                {"-0", 0},
                                                {"9223372036854775807", INT64_MAX},
                                                {"2026-01-01", "2026-01-01"}};
  for (const auto& [text, value] : cases) {
    const Json got = loaded(std::string("k: ") + text);
    EXPECT_EQ(got["k"], value) << text;
    EXPECT_EQ(got["k"].type_name(), std::string(value.type_name())) << text;
  }
}

TEST(LoadYaml, QuotedScalarsStayStrings) {
  EXPECT_EQ(loaded("{a: \"1\", b: 'true', c: \"\", d: !!str 5}"),
            Json::parse(R"({"a":"1","b":"true","c":"","d":"5"})"));
  EXPECT_EQ(loaded("a: |\n  x\n  y\nb: >-\n  x\n  y\n"), Json::parse(R"({"a":"x\ny\n","b":"x y"})"));
}

TEST(LoadYaml, AnchorsAndMergeKeys) {
  EXPECT_EQ(loaded("base: &b {x: 1, y: 2}\nuse: {<<: *b, y: 3}\n")["use"], Json::parse(R"({"x":1,"y":3})"));
}

TEST(LoadYaml, SeveralDocuments) {
  auto documents = load_yaml("a: 1\n---\n---\nb: 2\n", "t");
  ASSERT_TRUE(documents);
  EXPECT_EQ(*documents, std::vector<Json>({{{"a", 1}}, {{"b", 2}}}));
  EXPECT_TRUE(load_yaml("", "t")->empty());
}

TEST(LoadYaml, RefusalsNameTheFileAndTheLine) {
  EXPECT_EQ(refusal("a: 1\nb:\n  c: 1\n  c: 2\n"), "job.yaml:4: has the key 'c' twice");
  EXPECT_EQ(refusal("a: .nan\n"), "job.yaml:1: has .nan, which JSON cannot hold");
  EXPECT_EQ(refusal("a: 1\nb: [1\n").rfind("job.yaml:", 0), 0U) << refusal("a: 1\nb: [1\n");
  EXPECT_EQ(refusal("[a]: 1").rfind("job.yaml:1: ", 0), 0U);
  EXPECT_EQ(refusal("a: !!int x").rfind("job.yaml:1: ", 0), 0U);
}

TEST(LoadYaml, BombsAreRefusedQuickly) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) bomb += (k ? ", " : "") + before;
    bomb += "]\n";
  }
  EXPECT_NE(refusal(bomb).find("100,000 values"), std::string::npos) << refusal(bomb);
  EXPECT_NE(refusal(std::string(200, '[') + std::string(200, ']')).find("100 deep"), std::string::npos);
}

TEST(LoadYaml, Files) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("coxswain-yaml-" + std::to_string(getpid()));
  EXPECT_FALSE(load_yaml_file(path));
  EXPECT_NE(load_yaml_file(path).error().message.find(path), std::string::npos);
  std::ofstream(path) << "";
  EXPECT_TRUE(load_yaml_file(path)->empty());
  std::ofstream(path) << "a: 1\n";
  EXPECT_EQ(load_yaml_file(path)->front(), Json({{"a", 1}}));
  std::filesystem::remove(path);
  EXPECT_FALSE(load_yaml_file(std::filesystem::temp_directory_path())) << "a folder is no manifest";
}

TEST(ToYaml, ComesBackAsItWas) {
  const Json value = Json::parse(R"({
    "strings": ["", "a", "1", "1.5", "true", "no", "null", "~", "a: b", "a #b", "- a", "x\ny\n", "\ttab", " lead", "é",
                "a\"b\\c", "*star", "012", "1e5", "0x1", "{}", "multi\n\n", "end ", "%", "@x", "key:", "y"],
    "numbers": [0, -1, 1.5, 5e-05, 1e-08, 1e300, 100000.0, 9223372036854775807],
    "others": [true, false, null, {}, [], [[1], [{"a": [2]}]]],
    "nested": {"on": {"1": "x"}, "b c": 1}})");
  EXPECT_EQ(loaded(to_yaml(value)), value) << to_yaml(value);
}

TEST(ToYaml, IsMadeForReaders) {
  EXPECT_EQ(to_yaml(Json::parse(
                R"({"spec": {"b": [1, {"c": "d"}]}, "kind": "K", "apiVersion": "v1", "lr": 5e-05})")),
            "apiVersion: v1\nkind: K\nlr: 5.0e-05\nspec:\n  b:\n    - 1\n    - c: d\n");
}

}  // namespace
}  // namespace coxswain
