#include "runtime/model/safetensors_header.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace coxswain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string file_of(const std::string& header, size_t data_bytes) {
  std::string out;
  for (size_t i = 0; i < 8; ++i) out.push_back(static_cast<char>((header.size() >> (8 * i)) & 0xff));
  return out + header + std::string(data_bytes, '\0');
}

struct BadFile {
  const char* name;
  std::string content;
  const char* says;
};

std::string tensor(const char* dtype, const char* shape, const char* offsets) {
  return std::string(R"({"dtype":")") + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}";
}

std::vector<BadFile> bad_files() {
  const std::string f32 = tensor("F32", "[2,2]", "[0,16]");
  return {
      {"empty", "", "0 bytes are too few"},
      {"seven bytes", "1234567", "too few"},
      {"header longer than the file", std::string("\xff\x00\x00\x00\x00\x00\x00\x00{}", 10),
       "header of 255 bytes"},
      {"absurd header length", std::string(8, '\xff') + "{}", "header of 18446744073709551615 bytes"},
      {"not JSON", file_of("{nonsense", 0), "not a JSON object"},
      {"not an object", file_of("[1]", 0), "not a JSON object"},
      {"name twice", file_of(R"({"a":)" + f32 + R"(,"a":)" + f32 + "}", 16), "names tensor 'a' twice"},
      {"truncated data", file_of(R"({"a":)" + f32 + "}", 15), "tensor 'a' lies at bytes 0 to 16"},
      {"bytes left over", file_of(R"({"a":)" + f32 + "}", 17), "1 bytes after the last tensor"},
      {"shape larger than data", file_of(R"({"a":)" + tensor("F32", "[2,3]", "[0,16]") + "}", 16), "need 24"},
      {"dtype larger than data", file_of(R"({"a":)" + tensor("F64", "[2,2]", "[0,16]") + "}", 16), "need 32"},
      {"offsets reversed", file_of(R"({"a":)" + tensor("F32", "[0]", "[16,0]") + "}", 16), "bytes 16 to 0"},
      {"negative offset", file_of(R"({"a":)" + tensor("F32", "[2,2]", "[-16,0]") + "}", 16), "data_offsets"},
      {"shape overflows", file_of(R"({"a":)" + tensor("F32", "[4611686018427387904,8]", "[0,16]") + "}", 16),
       "too large"},
      {"negative size", file_of(R"({"a":)" + tensor("F32", "[-2,-2]", "[0,16]") + "}", 16), "shape"},
      {"unknown dtype", file_of(R"({"a":)" + tensor("Q4", "[2,2]", "[0,16]") + "}", 16), "dtype 'Q4'"},
      {"overlap", file_of(R"({"a":)" + f32 + R"(,"b":)" + tensor("F32", "[2]", "[8,16]") + "}", 16),
       "overlaps"},
      {"gap", file_of(R"({"a":)" + f32 + R"(,"b":)" + tensor("F32", "[2]", "[24,32]") + "}", 32),
       "after a gap"},
      {"no dtype", file_of(R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4), "needs dtype"},
      {"entry is no object", file_of(R"({"a":1})", 0), "needs dtype"},
      {"metadata is no object", file_of(R"({"__metadata__":1})", 0), "__metadata__"},
  };
}

TEST(SafetensorsHeader, RefusesEveryLieInOneSentence) {
  for (const auto& bad : bad_files()) {
    const auto parsed = parse_safetensors_header(bad.content, "x.safetensors");
    ASSERT_FALSE(parsed) << bad.name;
    EXPECT_EQ(parsed.error().code, contract::ExitCode::kBadInput) << bad.name;
    EXPECT_THAT(parsed.error().message, HasSubstr(bad.says)) << bad.name;
    EXPECT_THAT(parsed.error().message, testing::StartsWith("x.safetensors: ")) << bad.name;
  }
}

TEST(SafetensorsHeader, ReadsWhatItMakes) {
  std::vector<SafetensorsEntry> entries = {
      {"b", "BF16", {3}, 0, 0}, {"a", "F32", {2, 2}, 0, 0}, {"c", "U8", {0}, 0, 0}};
  const std::string header = make_safetensors_header(entries, {{"format", "pt"}});
  EXPECT_EQ(header.size() % 8, 0u);
  EXPECT_EQ(entries[1].begin, header.size() + 6);
  const auto parsed = parse_safetensors_header(header + std::string(22, 'x'), "x");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->metadata.at("format"), "pt");
  ASSERT_EQ(parsed->entries.size(), 3u);
  EXPECT_EQ(parsed->entries[0].name, "a");
  EXPECT_THAT(parsed->entries[0].shape, ElementsAre(2, 2));
  EXPECT_EQ(parsed->entries[0].begin, header.size() + 6);
  EXPECT_EQ(parsed->entries[0].end, header.size() + 22);
}

TEST(AssignShards, FillsFilesInOrder) {
  EXPECT_THAT(assign_shards({4, 4, 4}, 8), ElementsAre(0, 0, 1));
  EXPECT_THAT(assign_shards({4, 20, 4}, 8), ElementsAre(0, 1, 2));
  EXPECT_THAT(assign_shards({20, 4}, 8), ElementsAre(0, 1));
  EXPECT_THAT(assign_shards({}, 8), ElementsAre());
}

class WeightFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("weight-files-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  std::string complaint() {
    const auto found = find_weight_files(folder_.string());
    return found ? "" : found.error().message;
  }

  std::filesystem::path folder_;
};

TEST_F(WeightFiles, NoneIsAnError) {
  EXPECT_THAT(complaint(), HasSubstr("has neither model.safetensors nor"));
}

TEST_F(WeightFiles, AnIndexNamesThemOnceEach) {
  write("model.safetensors.index.json", R"({"weight_map":{"a":"m1","b":"m2","c":"m1"}})");
  write("m1", "");
  EXPECT_THAT(complaint(), HasSubstr("m2, which is not there"));
  write("m2", "");
  const auto found = find_weight_files(folder_.string());
  ASSERT_TRUE(found);
  EXPECT_THAT(*found, ElementsAre((folder_ / "m1").string(), (folder_ / "m2").string()));
}

TEST_F(WeightFiles, AnIndexCannotLeaveTheFolder) {
  write("model.safetensors.index.json", R"({"weight_map":{"a":"../m1"}})");
  EXPECT_THAT(complaint(), HasSubstr("names no file of this folder for tensor 'a'"));
}

TEST_F(WeightFiles, ABrokenIndexIsAnError) {
  for (const char* text : {"", "[]", "{}", R"({"weight_map":[]})", R"({"weight_map":{}})"}) {
    write("model.safetensors.index.json", text);
    EXPECT_THAT(complaint(), HasSubstr("weight_map")) << text;
  }
}

}  // namespace
}  // namespace coxswain
