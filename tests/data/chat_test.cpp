#include "runtime/data/chat.h"

#include <gmock/gmock.h>

#include "runtime/data/batch.h"
#include "tests/data/tiny_model.h"

namespace coxswain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kPlain[] =
    "{% for m in messages %}{{ m.role[0] }}:{{ m.content }}<end>{% endfor %}{% if add_generation_prompt "
    "%}a:{% endif %}";
constexpr char kTagged[] =
    "{% for m in messages %}{{ m.role[0] }}:{% if m.role == 'assistant' %}{% generation %}{{ m.content "
    "}}<end>"
    "{% endgeneration %}{% else %}{{ m.content }}<end>{% endif %}{% endfor %}";
constexpr char kTwoTurns[] =
    R"([{"role": "user", "content": "1"}, {"role": "assistant", "content": "2ü"},
        {"role": "user", "content": "3"}, {"role": "assistant", "content": ""}])";

class Chat : public ::testing::Test {
 protected:
  Chat() {
    write_tiny_model(folder_);
    tokenizer_.emplace(*Tokenizer::load(folder_.path()));
  }

  Result<TokenizedChat> tokenize(const char* source, const char* messages, bool response_only = true) {
    auto compiled = ChatTemplate::compile(source, {});
    if (!compiled) return tl::unexpected(compiled.error());
    return ChatTokenizer(*tokenizer_, *compiled, response_only).tokenize(OrderedJson::parse(messages));
  }

  // What has labels, each stretch in brackets.
  std::string trained(const char* source, const char* messages, bool response_only = true) {
    auto chat = tokenize(source, messages, response_only);
    if (!chat) return "failed: " + chat.error().message;
    std::string text;
    bool inside = false;
    for (size_t i = 0; i <= chat->ids.size(); ++i) {
      const bool label = i < chat->ids.size() && chat->labels[i] != kIgnoredLabel;
      if (label != inside) text += label ? "[" : "]";
      inside = label;
      if (!label) continue;
      EXPECT_EQ(chat->labels[i], chat->ids[i]);
      text += chat->ids[i] < 256 ? std::string(1, static_cast<char>(chat->ids[i]))
                                 : *tokenizer_->id_to_token(chat->ids[i]);
    }
    return text;
  }

  TemporaryFolder folder_;
  std::optional<Tokenizer> tokenizer_;
};

TEST_F(Chat, TrainsOnWhatTheAssistantSaysAndItsEndOfTurn) {
  EXPECT_EQ(trained(kPlain, kTwoTurns), "[2ü<end>][<end>]");
  EXPECT_EQ(trained(kTagged, kTwoTurns), "[2ü<end>][<end>]");
}

TEST_F(Chat, TrainsOnAllTokensIfAsked) {
  const char messages[] = R"([{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}])";
  EXPECT_EQ(trained(kPlain, messages, false), "[u:1<end>a:2<end>]");
  EXPECT_EQ(trained(kTagged, messages, false), "[u:1<end>a:2<end>]");
}

TEST_F(Chat, HasNoLabelsWithoutAssistant) {
  EXPECT_EQ(trained(kPlain, R"([{"role": "user", "content": "1"}])"), "");
}

TEST_F(Chat, AddsNoSpecialTokensAgain) {
  auto chat = tokenize("<s>{{ messages[0].content }}", R"([{"role": "user", "content": "1"}])");
  EXPECT_THAT(chat->ids, testing::ElementsAre(kBos, '1'));
}

TEST_F(Chat, SaysTheWayOutWhereATemplateCantBeMasked) {
  // Shows the last message otherwise than the ones before.
  const char other[] = "{% for m in messages %}{{ m.content }}{% if loop.last %}!{% endif %}{% endfor %}";
  EXPECT_THAT(trained(other, kTwoTurns),
              AllOf(HasSubstr("messages[1]"), HasSubstr("response_only_loss: false")));
  EXPECT_EQ(trained(other, kTwoTurns, false), "[12ü3!]");
  const char raises[] =
      "{% if messages[-1].role != 'assistant' %}{{ raise_exception('No answer') }}{% endif %}x";
  EXPECT_THAT(trained(raises, kTwoTurns),
              AllOf(HasSubstr("No answer"), HasSubstr("response_only_loss: false")));
}

TEST_F(Chat, PassesOnWhatATemplateRaises) {
  EXPECT_EQ(trained("{{ raise_exception('Never') }}", kTwoTurns),
            "failed: the chat template refuses the conversation: Never");
}

TEST(CheckMessages, NamesTheFieldThatIsWrong) {
  const std::pair<const char*, const char*> bad[] = {
      {R"("hello")", "messages must be a list of messages, but is a string"},
      {R"([])", "messages must hold at least one message, but is empty"},
      {R"([{"role": "user", "content": "a"}, 3])",
       "messages[1] must be an object with role and content, but is a number"},
      {R"([{"content": "a"}])", "messages[0].role must be a string, but is missing"},
      {R"([{"role": 1, "content": "a"}])", "messages[0].role must be a string, but is a number"},
      {R"([{"role": "user"}])", "messages[0].content must be a string or a list of parts, but is missing"},
      {R"([{"role": "user", "content": {"a": 1}}])",
       "messages[0].content must be a string or a list of parts, but is an object"},
      {R"([{"role": "user", "content": ["a"]}])",
       "messages[0].content[0] must be an object, but is a string"}};
  for (const auto& [messages, message] : bad) {
    const auto checked = check_messages("messages", OrderedJson::parse(messages));
    ASSERT_FALSE(checked) << messages;
    EXPECT_EQ(checked.error().message, message);
  }
  EXPECT_TRUE(check_messages("messages", OrderedJson::parse(
                                             R"([{"role": "user", "content": [{"type": "text", "text": "a"}]},
                                                 {"role": "assistant", "content": null, "tool_calls": []}])")));
}

}  // namespace
}  // namespace coxswain
