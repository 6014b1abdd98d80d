//===- Chat.cpp - a conversation as prompt tokens -------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/llm/Chat.h"

using namespace llmc::rt;

namespace {

/// The text of a special token, empty for a model without it.
std::string tokenText(const Tokenizer &tokenizer, int32_t id) {
  return tokenizer.contains(id) ? std::string(tokenizer.storedText(id)) : std::string();
}

} // namespace

StatusOr<ChatRenderer> ChatRenderer::create(std::shared_ptr<const Model> model) {
  const std::string &path = model->artifact().path();
  const flatbuffers::String *source = model->artifact().header().chat_template();
  if (!model->tokenizer())
    return unsupported(path + " has no tokenizer, so it cannot chat");
  if (!source || source->size() == 0)
    return unsupported(path + " has no chat template: it is not a chat model; use -p without "
                              "--chat");
  LLMC_ASSIGN_OR_RETURN(jinja::Template chatTemplate,
                        jinja::Template::parse(source->string_view(),
                                               "the chat template of " + path,
                                               jinja::kChatTemplate));
  return ChatRenderer(std::move(model), std::move(chatTemplate));
}

Status ChatRenderer::encode(std::span<const ChatMessage> messages, bool addGenerationPrompt,
                            std::vector<int32_t> &ids) const {
  const Tokenizer &tokenizer = *model->tokenizer();
  jinja::Json list = jinja::Json::array();
  for (const ChatMessage &message : messages)
    list.push_back({{"role", message.role}, {"content", message.content}});
  const jinja::Json context = {{"messages", std::move(list)},
                               {"add_generation_prompt", addGenerationPrompt},
                               {"bos_token", tokenText(tokenizer, tokenizer.bos())},
                               {"eos_token", tokenText(tokenizer, tokenizer.eos())}};
  LLMC_ASSIGN_OR_RETURN(std::vector<jinja::Span> spans, chatTemplate.renderSpans(context));
  std::vector<TextSpan> parts;
  for (const jinja::Span &span : spans)
    parts.push_back({span.text, span.trusted});
  return tokenizer.encodeSpans(parts, /*addSpecial=*/true, ids);
}
