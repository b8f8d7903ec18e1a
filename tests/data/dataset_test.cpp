#include "runtime/data/dataset.h"

#include <gmock/gmock.h>

#include "runtime/data/model_limits.h"
#include "tests/data/tiny_model.h"

namespace coxswain {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kTemplate[] =
    "{% for m in messages %}{{ m.role[0] }}:{{ m.content }}<end>{% endfor %}{% if add_generation_prompt "
    "%}a:{% endif %}";

class LoadDataset : public ::testing::Test {
 protected:
  LoadDataset() {
    write_tiny_model(folder_, {{"chat_template", kTemplate}});
    config_.base_model = folder_.path();
    config_.block_size = 16;
  }

  Result<Dataset> load(std::string_view content) {
    config_.data.path = folder_.write("train.jsonl", content);
    return load_dataset(config_);
  }

  std::string error(std::string_view content) {
    const auto dataset = load(content);
    if (dataset) return "no error";
    EXPECT_EQ(dataset.error().code, contract::ExitCode::kBadInput);
    return dataset.error().message;
  }

  TemporaryFolder folder_;
  TrainConfig config_;
};

std::vector<int64_t> join(std::vector<int64_t> a, const std::vector<int64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST_F(LoadDataset, PacksPlainTextWithEosBetween) {
  const auto dataset = load(R"({"text": "0123456789"}
{"text": "abcdef"}
{"text": ""}
)");
  ASSERT_TRUE(dataset) << dataset.error().message;
  ASSERT_EQ(dataset->size(), 2);
  EXPECT_EQ(dataset->row(0).ids, join(join(bytes("0123456789"), {kEos}), bytes("abcde")));
  EXPECT_EQ(dataset->row(0).labels, dataset->row(0).ids);
  EXPECT_THAT(dataset->row(0).segments, ElementsAre(11, 5));
  EXPECT_THAT(dataset->row(1).ids, ElementsAre('f', kEos, kEos));
  EXPECT_THAT(dataset->row(1).segments, ElementsAre(2, 1));
  EXPECT_EQ(dataset->tokens(), 19);
  EXPECT_EQ(dataset->longest_row(), 16);
  EXPECT_EQ(dataset->pad_id(), kEos);
  EXPECT_THAT(dataset->notices(), IsEmpty());
}

TEST_F(LoadDataset, SplitsATextThatIsLongerThanABlock) {
  config_.add_eos_token = false;
  const auto dataset = load(json({{"text", std::string(40, 'x')}}).dump());
  ASSERT_EQ(dataset->size(), 3);
  EXPECT_THAT(dataset->row(1).segments, ElementsAre(16));
  EXPECT_EQ(dataset->row(2).ids, bytes("xxxxxxxx"));
}

TEST_F(LoadDataset, SftOnTextKeepsEachRowAndCutsIt) {
  config_.trainer = Trainer::kSft;
  const auto dataset =
      load("{\"text\": \"ab\"}\n" + json({{"text", std::string(40, 'x')}}).dump() + "\n{\"text\": \"\"}");
  ASSERT_EQ(dataset->size(), 3);
  EXPECT_THAT(dataset->row(0).ids, ElementsAre('a', 'b', kEos));
  EXPECT_EQ(dataset->row(1).ids, std::vector<int64_t>(16, 'x'));
  EXPECT_THAT(dataset->row(2).ids, ElementsAre(kEos));
  EXPECT_THAT(dataset->notices(),
              ElementsAre("1 row(s) of the training data were longer than block_size 16 and were cut.",
                          "1 row(s) of the training data have no target token and add nothing to the loss."));
}

TEST_F(LoadDataset, RendersConversations) {
  config_.trainer = Trainer::kSft;
  const char row[] =
      R"({"messages": [{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}], "text": "x"})";
  auto dataset = load(row);
  ASSERT_TRUE(dataset) << dataset.error().message;
  EXPECT_THAT(dataset->row(0).ids, ElementsAre('u', ':', '1', kEnd, 'a', ':', '2', kEnd));
  EXPECT_THAT(dataset->row(0).labels, ElementsAre(-100, -100, -100, -100, -100, -100, '2', kEnd));
  EXPECT_EQ(dataset->rows_without_target(), 0);

  config_.block_size = 7;  // cuts the span
  EXPECT_THAT(load(row)->row(0).labels, ElementsAre(-100, -100, -100, -100, -100, -100, '2'));
  config_.response_only_loss = false;
  EXPECT_EQ(load(row)->row(0).labels, load(row)->row(0).ids);
  config_.data.chat_template = "none";
  EXPECT_THAT(load(row)->row(0).ids, ElementsAre('x', kEos));
}

TEST_F(LoadDataset, KeepsRowsWithoutTargetAndSaysSoOnce) {
  config_.trainer = Trainer::kSft;
  config_.block_size = 8;
  const std::string cut_off =
      R"({"messages": [{"role": "user", "content": "12345"}, {"role": "assistant", "content": "2"}]})";
  const std::string fits =
      R"({"messages": [{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}]})";
  const auto dataset = load(cut_off + "\n" + fits + "\n" + cut_off);
  ASSERT_TRUE(dataset) << dataset.error().message;
  EXPECT_EQ(dataset->size(), 3);
  EXPECT_EQ(dataset->rows_without_target(), 2);
  EXPECT_THAT(dataset->notices(), Contains(HasSubstr("2 row(s) of the training data have no target token")));
  EXPECT_THAT(error(cut_off), AllOf(HasSubstr("No row of"), HasSubstr("within block_size 8")));
}

TEST_F(LoadDataset, TextColumnMayNameTheConversation) {
  config_.trainer = Trainer::kSft;
  config_.data.text_column = "turns";
  const auto dataset = load(
      R"({"turns": [{"role": "user", "content": "1"}, {"role": "assistant", "content": ""}], "messages": 3})");
  ASSERT_TRUE(dataset) << dataset.error().message;
  EXPECT_THAT(dataset->row(0).ids, ElementsAre('u', ':', '1', kEnd, 'a', ':', kEnd));
}

TEST_F(LoadDataset, TakesTokensAsTheyAreAndNeedsNoTokenizer) {
  std::filesystem::remove(folder_.path() / "tokenizer.json");
  const auto dataset = load(R"({"input_ids": [1, 2, 258]}
{"input_ids": [4, 5], "labels": [-100, 5]}
{"input_ids": [6], "labels": null})");
  ASSERT_TRUE(dataset) << dataset.error().message;
  EXPECT_THAT(dataset->row(0).labels, ElementsAre(1, 2, 258));
  EXPECT_THAT(dataset->row(1).ids, ElementsAre(4, 5));
  EXPECT_THAT(dataset->row(1).labels, ElementsAre(-100, 5));
  EXPECT_THAT(dataset->row(2).labels, ElementsAre(6));
  EXPECT_THAT(dataset->row(2).segments, ElementsAre(1));
}

TEST_F(LoadDataset, ListsColumnsWhereOneIsMissing) {
  EXPECT_THAT(
      error(R"({"prompt": "a", "answer": "b"})"),
      AllOf(HasSubstr("train.jsonl line 1: "), HasSubstr("Required: text (or input_ids); missing: text; "
                                                         "available: prompt, answer.")));
  EXPECT_THAT(error("{\"text\": \"a\"}\n{\"texts\": \"b\"}"),
              AllOf(HasSubstr("train.jsonl line 2: "),
                    HasSubstr("Required: text; missing: text; available: texts.")));
  EXPECT_THAT(error(R"({"messages": []})"), HasSubstr("; conversations are trained on with trainer: sft."));
  config_.trainer = Trainer::kSft;
  EXPECT_THAT(error(R"({"prompt": "a"})"),
              HasSubstr("Required: messages (or text, or input_ids); missing: messages, text; "
                        "available: prompt."));
  config_.data.text_column = "chat";
  EXPECT_THAT(
      error(R"({"messages": [], "input_ids": [1]})"),
      HasSubstr(
          "Required: chat (column_mapping.text_column); missing: chat; available: messages, input_ids."));
}

TEST_F(LoadDataset, NamesLineAndFieldThatIsWrong) {
  EXPECT_THAT(error("{\"text\": \"a\"}\n{\"text\": 3}"),
              HasSubstr("line 2: text must be a string, but is a number."));
  EXPECT_THAT(error("{\"text\": \"a\"}\n{\"text"), HasSubstr("train.jsonl line 2 is not valid JSON"));
  EXPECT_THAT(
      error(R"({"input_ids": [1, 259]})"),
      HasSubstr("line 1: input_ids[1] is 259, which the model's vocabulary does not have (0 to 258)."));
  EXPECT_THAT(error(R"({"input_ids": [1, -100]})"), HasSubstr("input_ids[1] is -100"));
  EXPECT_THAT(error(R"({"input_ids": [1, 2.5]})"),
              HasSubstr("input_ids[1] must be a whole number, but is 2.5."));
  EXPECT_THAT(error(R"({"input_ids": [18446744073709551615]})"),
              HasSubstr("input_ids[0] is 18446744073709551615"));
  EXPECT_THAT(error(R"({"input_ids": "1 2"})"),
              HasSubstr("input_ids must be a list of numbers, but is a string."));
  EXPECT_THAT(error(R"({"input_ids": [1, 2], "labels": [1]})"),
              HasSubstr("there are 1 labels for 2 input_ids"));
  EXPECT_THAT(error(R"({"input_ids": [1], "labels": [-1]})"), HasSubstr("labels[0] is -1"));
  config_.trainer = Trainer::kSft;
  EXPECT_THAT(error(R"({"messages": [{"role": "user"}]})"), HasSubstr("line 1: messages[0].content must be"));
}

TEST_F(LoadDataset, NamesTheLineThatATemplateRefuses) {
  config_.trainer = Trainer::kSft;
  folder_.write("chat_template.jinja",
                "{% if messages[0].role == 'assistant' %}{{ raise_exception('Ask first') }}{% endif %}ok");
  EXPECT_THAT(error("{\"messages\": [{\"role\": \"user\", \"content\": \"\"}]}\n"
                    "{\"messages\": [{\"role\": \"assistant\", \"content\": \"\"}]}"),
              HasSubstr("line 2: the chat template refuses the conversation: Ask first."));
}

TEST_F(LoadDataset, RefusesATokenizerThatIsNotTheModels) {
  folder_.write("config.json", R"({"vocab_size": 100})");
  EXPECT_THAT(error(R"({"text": "z"})"),
              AllOf(HasSubstr("gave the id 257"), HasSubstr("vocab_size 100"), Not(HasSubstr("line"))));
}

TEST_F(LoadDataset, RefusesAnEmptyFile) {
  EXPECT_THAT(error(""), HasSubstr("train.jsonl has no row to train on"));
  EXPECT_THAT(error("\n\n"), HasSubstr("train.jsonl has no row to train on"));
}

TEST_F(LoadDataset, SaysThatTheModelFolderIsNoSuch) {
  config_.base_model = "/nowhere";
  EXPECT_THAT(error("{}"), HasSubstr("There is no /nowhere/config.json"));
}

TEST_F(LoadDataset, ClampsTheBlockSizeWithANotice) {
  config_.block_size = 100;
  EXPECT_THAT(load(R"({"text": "a"})")->notices(),
              ElementsAre("block_size 100 is more than the model's maximum of 64 tokens; 64 is used."));
}

TEST(FindDataFile, TakesAFileOrAFolder) {
  TemporaryFolder folder;
  DataConfig data;
  data.path = folder.path();
  EXPECT_THAT(find_data_file(data).error().message,
              HasSubstr("has no train.jsonl (data.train_split), nor any other"));
  folder.write("a.jsonl", "");
  folder.write("notes.txt", "");
  EXPECT_EQ(find_data_file(data)->filename(), "a.jsonl");
  data.train_split = "validation";
  EXPECT_THAT(find_data_file(data).error().message,
              HasSubstr("has no validation.jsonl (data.train_split); there is: a.jsonl"));
  data.train_split = "train";
  folder.write("b.jsonl", "");
  EXPECT_THAT(find_data_file(data).error().message, HasSubstr("there is: a.jsonl, b.jsonl"));
  folder.write("train.jsonl", "");
  EXPECT_EQ(find_data_file(data)->filename(), "train.jsonl");
  data.train_split = "b";
  EXPECT_EQ(find_data_file(data)->filename(), "b.jsonl");
  data.path = folder.path() / "a.jsonl";
  EXPECT_EQ(find_data_file(data)->filename(), "a.jsonl");
  data.path = folder.path() / "notes.txt";
  EXPECT_THAT(find_data_file(data).error().message, HasSubstr("is no .jsonl file"));
  data.path = folder.path() / "none.jsonl";
  EXPECT_THAT(find_data_file(data).error().message, HasSubstr("there is no file or folder"));
}

TEST(ModelLimits, PrefersTheUserThenTheConfigThenTheFallback) {
  TemporaryFolder folder;
  auto max_length = [&](const char* config, std::optional<int64_t> user = {}) {
    folder.write("config.json", config);
    return read_model_limits(folder.path(), user)->max_length;
  };
  EXPECT_EQ(max_length(R"({"vocab_size": 9, "max_position_embeddings": 50})"), 50);
  EXPECT_EQ(max_length(R"({"vocab_size": 9, "max_position_embeddings": 50})", 70), 70);
  EXPECT_EQ(max_length(R"({"vocab_size": 9, "n_positions": 40})"), 40);
  EXPECT_EQ(max_length(R"({"vocab_size": 9})"), 2048);
  EXPECT_EQ(max_length(R"({"text_config": {"vocab_size": 9, "max_position_embeddings": 30}})"), 30);
  folder.write("config.json", "{}");
  EXPECT_THAT(read_model_limits(folder.path(), {}).error().message, HasSubstr("must say vocab_size"));
}

TEST(EffectiveBlockSize, IsBoundByTheModel) {
  EXPECT_EQ(effective_block_size(-1, 8192).tokens, 1024);
  EXPECT_EQ(effective_block_size(-1, 512).tokens, 512);
  EXPECT_EQ(effective_block_size(512, 512).tokens, 512);
  EXPECT_FALSE(effective_block_size(512, 512).notice);
  EXPECT_EQ(effective_block_size(2048, 512).tokens, 512);
  EXPECT_TRUE(effective_block_size(2048, 512).notice);
}

}  // namespace
}  // namespace coxswain
