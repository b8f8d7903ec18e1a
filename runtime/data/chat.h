// Conversations as token ids and labels. Torch-free.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "contract/result.h"
#include "runtime/data/jsonl.h"
#include "runtime/tokenizer/chat_template.h"
#include "runtime/tokenizer/tokenizer.h"

namespace coxswain {

// Checks the shape of a conversation: a list of objects with `role` (string) and `content` (string, or list
// of objects; may be left out beside tool_calls). The failure names the field, as in messages[2].content.
Result<void> check_messages(const std::string& column, const OrderedJson& messages);

struct TokenizedChat {
  std::vector<int64_t> ids;
  std::vector<int64_t> labels;  // of one length with ids
};

// Renders conversations and tokenizes them without adding special tokens again. With `response_only`, only
// what the assistant says has labels, its end-of-turn token included:
//  - a template with generation tags: every token that overlaps a tagged span (transformers'
//  assistant_masks);
//  - else by prefix rendering: for each assistant message i, the tokens from the length of tokens(messages
//  before i, with
//    generation prompt) up to the length of tokens(messages up to i).
// Failures: the template raises; or its prefixes aren't prefixes, so that nothing can be told apart (the
// message names response_only_loss: false).
class ChatTokenizer {
 public:
  // Keeps both references: they must outlive it.
  ChatTokenizer(const Tokenizer& tokenizer, const ChatTemplate& chat_template, bool response_only)
      : tokenizer_(tokenizer), template_(chat_template), response_only_(response_only) {}

  // `messages` passed check_messages.
  Result<TokenizedChat> tokenize(const OrderedJson& messages) const;

 private:
  Result<TokenizedChat> mask_by_tags(const RenderedChat& rendered) const;
  Result<TokenizedChat> mask_by_prefixes(const OrderedJson& messages, const std::string& text) const;

  const Tokenizer& tokenizer_;
  const ChatTemplate& template_;
  bool response_only_;
};

}  // namespace coxswain
