#include "runtime/tokenizer/chat_template.h"

#include <gmock/gmock.h>

#include "tests/data/tiny_model.h"

namespace coxswain {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kHello[] = R"([{"role": "user", "content": "Hello"}])";

Result<RenderedChat> render(std::string_view source, std::string_view messages = kHello,
                            bool prompt = false) {
  auto compiled = ChatTemplate::compile(source, {{"bos_token", "<s>"}});
  if (!compiled) return tl::unexpected(compiled.error());
  return compiled->render(messages, prompt);
}

std::string text(std::string_view source, std::string_view messages = kHello) {
  auto rendered = render(source, messages);
  return rendered ? rendered->text : "failed: " + rendered.error().message;
}

TEST(ChatTemplate, SeesMessagesTokensAndThePrompt) {
  const char source[] =
      "{{ bos_token }}{% for m in messages %}{{ m['role'] }}: {{ m.content | trim }}{% endfor %}"
      "{% if add_generation_prompt %} assistant:{% endif %}{{ eos_token }}";
  EXPECT_EQ(render(source)->text, "<s>user: Hello");
  EXPECT_EQ(render(source, kHello, true)->text, "<s>user: Hello assistant:");
}

TEST(ChatTemplate, TrimsBlocksAndStripsThem) {
  EXPECT_EQ(text("a\n  {% if true %}\nb\n  {% endif %}\nc\n"), "a\nb\nc");
  EXPECT_EQ(text("a \n{%- if true -%}\n b{% endif %}"), "ab");
}

TEST(ChatTemplate, WritesValuesAsPythonDoes) {
  EXPECT_EQ(text("{{ true }} {{ none }} {{ [1, 'a', false] }} {{ {'k': \"it's\"} }}"),
            "True None [1, 'a', False] {'k': \"it's\"}");
  EXPECT_EQ(text("{{ {'b': [1, 2], 'a': 'ü<'} | tojson }}"), "{\"b\": [1, 2], \"a\": \"ü<\"}");
  EXPECT_EQ(text("{{ {'b': 1, 'a': []} | tojson(indent=2, sort_keys=true) }}"),
            "{\n  \"a\": [],\n  \"b\": 1\n}");
  EXPECT_EQ(text("{{ ['ü🙂'] | tojson(ensure_ascii=true, separators=[',', ':']) }}"),
            "[\"\\u00fc\\ud83d\\ude42\"]");
}

TEST(ChatTemplate, HasPythonsMethodsAndLoopControls) {
  EXPECT_EQ(text("{{ ' a '.strip() }}{{ 'a-b'.split('-')[-1] }}{{ 'ab'.startswith('a') }}{{ 'x'.upper() }}"),
            "abTrueX");
  EXPECT_EQ(text("{% for i in range(5) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break "
                 "%}{% endif %}"
                 "{{ i }}{% endfor %}"),
            "02");
  EXPECT_EQ(text("{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor "
                 "%}{{ ns.n }}"),
            "1");
  EXPECT_EQ(text("{{ strftime_now('%Y') | length }}"), "4");
  EXPECT_EQ(text("{{ messages[::-1] | length }}{{ messages[1:] | length }}"), "10");
}

TEST(ChatTemplate, DropsKeysWithoutValueAndAliasesReasoning) {
  EXPECT_EQ(text("{{ 'name' in messages[0] }}{{ messages[0].reasoning_content }}",
                 R"([{"role": "assistant", "content": "a", "name": null, "thinking": "hm"}])"),
            "Falsehm");
}

TEST(ChatTemplate, TellsWhatStoodInGenerationTags) {
  const auto rendered = render(
      "{% for m in messages %}\n{{ m.role }}: {% if m.role == 'assistant' %}{% generation %}{{ m.content "
      "}}.\n"
      "{%- endgeneration %}\n{% else %}{{ m.content }}{% endif %}|{% endfor %}",
      R"([{"role": "user", "content": "ü"}, {"role": "assistant", "content": "yes"}, {"role": "assistant", "content": ""}])");
  ASSERT_TRUE(rendered) << rendered.error().message;
  EXPECT_EQ(rendered->text, "user: ü|assistant: yes.|assistant: .|");
  ASSERT_EQ(rendered->generated.size(), 2u);
  std::vector<std::string> generated;
  for (const auto& span : rendered->generated) {
    generated.push_back(rendered->text.substr(span.begin, span.end - span.begin));
  }
  EXPECT_THAT(generated, testing::ElementsAre("yes.", "."));
}

TEST(ChatTemplate, KeepsTheWhitespaceControlOfGenerationTags) {
  EXPECT_EQ(text("a {%- generation -%} b {%- endgeneration -%} c"), "abc");
  EXPECT_EQ(text("a\n  {% generation %}\nb\n  {% endgeneration %}\nc"), "a\nb\nc");
}

TEST(ChatTemplate, RaisesWithItsOwnMessage) {
  const auto raised = render("{{ raise_exception('Roles must alternate') }}");
  ASSERT_FALSE(raised);
  EXPECT_EQ(raised.error().code, contract::ExitCode::kBadInput);
  EXPECT_EQ(raised.error().message, "the chat template refuses the conversation: Roles must alternate");
}

TEST(ChatTemplate, SaysWhatIsWrongWithATemplate) {
  EXPECT_THAT(render("{% if %}").error().message,
              AllOf(HasSubstr("the chat template does not compile: "), HasSubstr("line 1")));
  EXPECT_THAT(render("a\n{{ messages[0].nothing.more }}").error().message,
              AllOf(HasSubstr("the chat template can't be rendered: "), HasSubstr("line 2")));
  EXPECT_FALSE(render("x", "[1]"));
}

TEST(ChatTemplate, IsFoundInTheModelFolder) {
  TemporaryFolder folder;
  write_tiny_model(folder);
  EXPECT_THAT(ChatTemplate::load(folder.path(), {}).error().message, HasSubstr("has no chat template"));

  const json named = {{{"name", "tool_use"}, {"template", "tools"}},
                      {{"name", "default"}, {"template", "usual"}}};
  write_tiny_model(folder, {{"chat_template", named}});
  EXPECT_EQ(ChatTemplate::load(folder.path(), {})->render(kHello, false)->text, "usual");

  write_tiny_model(folder, {{"chat_template", json::array({named[0]})}});
  EXPECT_THAT(ChatTemplate::load(folder.path(), {}).error().message, HasSubstr("it has: tool_use"));

  write_tiny_model(folder, {{"chat_template", "one"}});
  EXPECT_EQ(ChatTemplate::load(folder.path(), {})->render(kHello, false)->text, "one");

  folder.write("chat_template.jinja", "file");
  EXPECT_EQ(ChatTemplate::load(folder.path(), {})->render(kHello, false)->text, "file");
}

}  // namespace
}  // namespace coxswain
