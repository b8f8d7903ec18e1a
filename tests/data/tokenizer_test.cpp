#include "runtime/tokenizer/tokenizer.h"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/data/tiny_model.h"

namespace coxswain {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

Tokenizer load(const json& extra = json::object()) {
  TemporaryFolder folder;
  write_tiny_model(folder, extra);
  auto tokenizer = Tokenizer::load(folder.path());
  if (!tokenizer) throw std::runtime_error(tokenizer.error().message);
  return std::move(*tokenizer);
}

TEST(Tokenizer, EncodesAndDecodes) {
  const Tokenizer tokenizer = load();
  const std::string text = "Grüße 🙂<end>";
  auto expected = bytes("Grüße 🙂");
  expected.push_back(kEnd);
  const auto ids = tokenizer.encode(text, true);
  ASSERT_TRUE(ids);
  EXPECT_EQ(*ids, expected);
  EXPECT_EQ(*tokenizer.decode(*ids, false), text);
  EXPECT_EQ(*tokenizer.decode(*ids, true), "Grüße 🙂");
  EXPECT_TRUE(tokenizer.encode("", true)->empty());
  EXPECT_EQ(*tokenizer.decode({}, true), "");
  EXPECT_EQ(tokenizer.vocabulary_size(), 259);
}

TEST(Tokenizer, OffsetsAreBytesAndSpanWholeCharacters) {
  const auto encoding = load().encode_with_offsets("aü<end>", false);
  ASSERT_TRUE(encoding);
  std::vector<std::pair<int64_t, int64_t>> spans;
  for (const auto& span : encoding->offsets) spans.emplace_back(span.begin, span.end);
  EXPECT_THAT(spans, ElementsAre(Pair(0, 1), Pair(1, 3), Pair(1, 3), Pair(3, 8)));
}

TEST(Tokenizer, LooksUpTokens) {
  const Tokenizer tokenizer = load();
  EXPECT_EQ(tokenizer.token_to_id("<end>"), kEnd);
  EXPECT_EQ(tokenizer.token_to_id("nothing"), std::nullopt);
  EXPECT_EQ(tokenizer.id_to_token(kBos), "<s>");
  EXPECT_EQ(tokenizer.id_to_token(1000), std::nullopt);
  EXPECT_EQ(tokenizer.id_to_token(-1), std::nullopt);
}

TEST(Tokenizer, AddsWhatItsPostProcessorSays) {
  // add_bos_token and add_eos_token don't count beside a tokenizer.json, as in transformers.
  const json flags = {{"bos_token", "<s>"}, {"add_bos_token", true}, {"add_eos_token", true}};
  EXPECT_THAT(*load(flags).encode("a", true), ElementsAre('a'));

  TemporaryFolder folder;
  write_tiny_model(folder);
  std::ifstream file(folder.path() / "tokenizer.json");
  json tokenizer_json = json::parse(file);
  tokenizer_json["post_processor"] = json::parse(R"({"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
      "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
      "special_tokens": {"<s>": {"id": "<s>", "ids": [256], "tokens": ["<s>"]}}})");
  folder.write("tokenizer.json", tokenizer_json.dump());
  const auto tokenizer = Tokenizer::load(folder.path());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_THAT(*tokenizer->encode("a", true), ElementsAre(kBos, 'a'));
  EXPECT_THAT(*tokenizer->encode("a", false), ElementsAre('a'));
}

TEST(Tokenizer, MatchesNamedTokensThatTheFileOnlyHasInItsVocabulary) {
  EXPECT_THAT(*load({{"pad_token", "ab"}}).encode("ab", true),
              ElementsAre('a', 'b'));  // not in the vocabulary
  TemporaryFolder folder;
  write_tiny_model(folder, {{"pad_token", "<end>"}});
  std::ifstream file(folder.path() / "tokenizer.json");
  json tokenizer_json = json::parse(file);
  tokenizer_json["added_tokens"].erase(2);
  folder.write("tokenizer.json", tokenizer_json.dump());
  EXPECT_THAT(*Tokenizer::load(folder.path())->encode("a<end>", true), ElementsAre('a', kEnd));
}

TEST(Tokenizer, SpecialTokensAreStringsOrObjectsOrNumbers) {
  TemporaryFolder folder;
  write_tiny_model(folder, {{"bos_token", {{"content", "<s>"}, {"lstrip", false}}}, {"eos_token", nullptr}});
  folder.write("generation_config.json", R"({"eos_token_id": [258, 257]})");
  const auto tokenizer = Tokenizer::load(folder.path());
  ASSERT_TRUE(tokenizer);
  const SpecialTokens& special = tokenizer->special_tokens();
  EXPECT_THAT(special.by_name, ElementsAre(Pair("bos_token", "<s>")));
  EXPECT_EQ(special.bos_id, kBos);
  EXPECT_EQ(special.eos_id, kEnd);
  EXPECT_THAT(special.stop_ids, ElementsAre(258, 257));
  EXPECT_EQ(special.pad_id, std::nullopt);
  EXPECT_EQ(tokenizer->pad_id(), kEnd);
}

TEST(Tokenizer, SpecialTokensMapFillsIn) {
  TemporaryFolder folder;
  write_tiny_model(folder);
  folder.write("special_tokens_map.json", R"({"eos_token": "<end>", "pad_token": "<s>"})");
  const auto tokenizer = Tokenizer::load(folder.path());
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(tokenizer->special_tokens().eos_id, kEnd);
  EXPECT_EQ(tokenizer->pad_id(), kBos);
}

TEST(Tokenizer, SaysWhatIsWrongWithAFolder) {
  TemporaryFolder folder;
  const auto none = Tokenizer::load(folder.path());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, contract::ExitCode::kBadInput);
  EXPECT_THAT(none.error().message, HasSubstr("There is no " + folder.path().string() + "/tokenizer.json"));

  folder.write("tokenizer.json", "{\"version\": 3}");
  EXPECT_THAT(Tokenizer::load(folder.path()).error().message, HasSubstr("tokenizer.json can't be loaded: "));

  write_tiny_model(folder);
  folder.write("tokenizer_config.json", "{\"a\": ");
  EXPECT_THAT(Tokenizer::load(folder.path()).error().message,
              AllOf(HasSubstr("tokenizer_config.json"), HasSubstr("not valid JSON at byte")));
}

TEST(Tokenizer, RefusesIdsThatCantBe) {
  EXPECT_FALSE(load().decode(std::vector<int64_t>{-100}, true));
}

}  // namespace
}  // namespace coxswain
