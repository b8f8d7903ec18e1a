#include "runtime/data/chat.h"

#include <algorithm>

#include "runtime/data/batch.h"

namespace coxswain {
namespace {

Result<void> wrong_type(const std::string& field, const char* allowed, const OrderedJson& value) {
  return bad_input(field + " must be " + allowed + ", but is " +
                   (value.is_null() ? "missing" : describe_type(value)));
}

Result<void> check_content(const std::string& field, const OrderedJson& message) {
  const OrderedJson content = message.value("content", OrderedJson());
  if (content.is_string() || (content.is_null() && message.contains("tool_calls"))) return {};
  if (!content.is_array()) return wrong_type(field, "a string or a list of parts", content);
  for (size_t i = 0; i < content.size(); ++i) {
    if (!content[i].is_object())
      return wrong_type(field + "[" + std::to_string(i) + "]", "an object", content[i]);
  }
  return {};
}

tl::unexpected<Failure> not_maskable(size_t message, const std::string& why) {
  return bad_input("response_only_loss can't tell messages[" + std::to_string(message) +
                   "] from the rest, because " + why +
                   "; set response_only_loss: false to train on all tokens");
}

// The first `count` messages as JSON, from each message's own JSON.
std::string join(const std::vector<std::string>& messages, size_t count) {
  std::string json = "[";
  for (size_t i = 0; i < count; ++i) json += (i > 0 ? "," : "") + messages[i];
  return json + "]";
}

}  // namespace

Result<void> check_messages(const std::string& column, const OrderedJson& messages) {
  if (!messages.is_array()) return wrong_type(column, "a list of messages", messages);
  if (messages.empty()) return bad_input(column + " must hold at least one message, but is empty");
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string field = column + "[" + std::to_string(i) + "]";
    const OrderedJson& message = messages[i];
    if (!message.is_object()) return wrong_type(field, "an object with role and content", message);
    if (const OrderedJson role = message.value("role", OrderedJson()); !role.is_string()) {
      return wrong_type(field + ".role", "a string", role);
    }
    if (auto content = check_content(field + ".content", message); !content) return content;
  }
  return {};
}

Result<TokenizedChat> ChatTokenizer::tokenize(const OrderedJson& messages) const {
  auto rendered = template_.render(messages.dump(), false);
  if (!rendered) return tl::unexpected(rendered.error());
  if (response_only_ && template_.has_generation_tags()) return mask_by_tags(*rendered);
  if (response_only_) return mask_by_prefixes(messages, rendered->text);
  auto ids = tokenizer_.encode(rendered->text, false);
  if (!ids) return tl::unexpected(ids.error());
  return TokenizedChat{*ids, *ids};
}

Result<TokenizedChat> ChatTokenizer::mask_by_tags(const RenderedChat& rendered) const {
  auto encoding = tokenizer_.encode_with_offsets(rendered.text, false);
  if (!encoding) return tl::unexpected(encoding.error());
  TokenizedChat chat{std::move(encoding->ids), {}};
  chat.labels.assign(chat.ids.size(), kIgnoredLabel);
  // Spans and tokens are both in order: one pass over the two.
  auto span = rendered.generated.begin();
  for (size_t i = 0; i < chat.ids.size(); ++i) {
    while (span != rendered.generated.end() && encoding->offsets[i].begin >= span->end) ++span;
    if (span == rendered.generated.end()) break;
    if (encoding->offsets[i].end > span->begin) chat.labels[i] = chat.ids[i];
  }
  return chat;
}

Result<TokenizedChat> ChatTokenizer::mask_by_prefixes(const OrderedJson& messages,
                                                      const std::string& text) const {
  auto ids = tokenizer_.encode(text, false);
  if (!ids) return tl::unexpected(ids.error());
  TokenizedChat chat{std::move(*ids), {}};
  chat.labels.assign(chat.ids.size(), kIgnoredLabel);

  std::vector<std::string> parts;
  for (const OrderedJson& message : messages) parts.push_back(message.dump());
  // Tokens of the conversation's first `count` messages; they must render as the beginning of the whole.
  auto prefix_length = [&](size_t message, size_t count, bool generation_prompt) -> Result<size_t> {
    if (count == parts.size() && !generation_prompt) return chat.ids.size();
    auto prefix = template_.render(join(parts, count), generation_prompt);
    if (!prefix) return not_maskable(message, "for the messages before it " + prefix.error().message);
    if (!text.starts_with(prefix->text)) {
      return not_maskable(message, "the chat template does not render the beginning of a conversation alike");
    }
    auto prefix_ids = tokenizer_.encode(prefix->text, false);
    if (!prefix_ids) return tl::unexpected(prefix_ids.error());
    return prefix_ids->size();
  };
  for (size_t i = 0; i < parts.size(); ++i) {
    if (messages[i]["role"] != "assistant") continue;
    auto begin = prefix_length(i, i, true);
    if (!begin) return tl::unexpected(begin.error());
    auto end = prefix_length(i, i + 1, false);
    if (!end) return tl::unexpected(end.error());
    for (size_t t = *begin; t < std::min(*end, chat.ids.size()); ++t) chat.labels[t] = chat.ids[t];
  }
  return chat;
}

}  // namespace coxswain
