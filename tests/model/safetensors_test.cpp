#include "runtime/model/safetensors.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace coxswain {
namespace {

using testing::HasSubstr;

class Safetensors : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("safetensors-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) { return (folder_ / name).string(); }

  std::filesystem::path folder_;
};

TEST_F(Safetensors, EveryDtypeComesBackBitwise) {
  TensorMap tensors;
  for (auto type : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble, at::kLong, at::kInt, at::kShort,
                    at::kChar, at::kByte, at::kBool}) {
    // Three elements, so that what follows isn't aligned to its size.
    tensors[std::string("t") + at::toString(type)] = torch::randint(0, 2, {3}, torch::kLong).to(type);
  }
  tensors["scalar"] = torch::tensor(2.5);
  tensors["empty"] = torch::empty({0, 4});
  tensors["transposed"] = torch::randn({4, 5}).t();
  ASSERT_TRUE(write_safetensors(path("a"), tensors));
  EXPECT_FALSE(std::filesystem::exists(path("a.tmp")));
  const auto read = SafetensorsReader::open({path("a")})->all();
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(read->at(name).scalar_type(), tensor.scalar_type()) << name;
    EXPECT_TRUE(torch::equal(read->at(name), tensor)) << name;
  }
}

TEST_F(Safetensors, WritesNeverReachTheFileAndOutliveTheReader) {
  ASSERT_TRUE(write_safetensors(path("a"), {{"x", torch::ones({1000})}}));
  torch::Tensor x = *SafetensorsReader::open({path("a")})->tensor_fp32("x");
  x.add_(1);
  EXPECT_EQ(x.sum().item<float>(), 2000);
  EXPECT_EQ(SafetensorsReader::open({path("a")})->tensor("x")->sum().item<float>(), 1000);
}

TEST_F(Safetensors, Fp32AliasesTheFileAndBf16IsConverted) {
  ASSERT_TRUE(
      write_safetensors(path("a"), {{"f", torch::ones({8})}, {"h", torch::ones({9000}, at::kBFloat16)}}));
  const auto reader = SafetensorsReader::open({path("a")});
  EXPECT_EQ(reader->tensor_fp32("f")->data_ptr(), reader->tensor("f")->data_ptr());
  const torch::Tensor h = *reader->tensor_fp32("h");
  EXPECT_EQ(h.scalar_type(), at::kFloat);
  EXPECT_EQ(h.sum().item<float>(), 9000);
  EXPECT_EQ(reader->tensor("h")->to(at::kFloat).sum().item<float>(), 9000);
}

TEST_F(Safetensors, IntegersAreNoWeights) {
  ASSERT_TRUE(write_safetensors(path("a"), {{"x", torch::ones({2}, at::kInt)}}));
  const auto tensor = SafetensorsReader::open({path("a")})->tensor_fp32("x");
  ASSERT_FALSE(tensor);
  EXPECT_THAT(tensor.error().message,
              HasSubstr("tensor 'x' has dtype I32, which is not supported for weights"));
}

TEST_F(Safetensors, ANameInTwoFilesIsAnError) {
  ASSERT_TRUE(write_safetensors(path("a"), {{"x", torch::ones({2})}}));
  ASSERT_TRUE(write_safetensors(path("b"), {{"x", torch::ones({2})}}));
  const auto reader = SafetensorsReader::open({path("a"), path("b")});
  ASSERT_FALSE(reader);
  EXPECT_THAT(reader.error().message, HasSubstr("tensor 'x' is in another file"));
}

TEST_F(Safetensors, LargeModelsAreShardedWithAnIndex) {
  const TensorMap tensors = {
      {"a", torch::randn({100})}, {"b", torch::randn({100})}, {"c", torch::randn({100})}};
  ASSERT_TRUE(write_model_weights(folder_.string(), tensors, 900));
  EXPECT_FALSE(std::filesystem::exists(path("model.safetensors")));
  std::ifstream in(path("model.safetensors.index.json"));
  const auto index = nlohmann::json::parse(in);
  EXPECT_EQ(index["metadata"]["total_size"], 1200);
  EXPECT_EQ(index["weight_map"]["b"], "model-00001-of-00002.safetensors");
  EXPECT_EQ(index["weight_map"]["c"], "model-00002-of-00002.safetensors");
  const auto read = SafetensorsReader::open_folder(folder_.string())->all();
  for (const auto& [name, tensor] : tensors) EXPECT_TRUE(torch::equal(read->at(name), tensor)) << name;
}

TEST_F(Safetensors, AFailedWriteLeavesTheOldFile) {
  ASSERT_TRUE(write_safetensors(path("a"), {{"x", torch::ones({2})}}));
  EXPECT_FALSE(write_safetensors(path("a"), {{"x", torch::ones({2}, at::kComplexHalf)}}));
  EXPECT_TRUE(SafetensorsReader::open({path("a")})->has("x"));
  const auto nowhere = write_safetensors(path("none/a"), {{"x", torch::ones({2})}});
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, contract::ExitCode::kStorage);
  EXPECT_THAT(nowhere.error().message, HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace coxswain
