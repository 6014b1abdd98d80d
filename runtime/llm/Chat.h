//===- Chat.h - a conversation as prompt tokens -----------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The model's own chat template writes the conversation. What the template itself
// writes may hold control tokens; what people and models said is text, also where
// it spells out a control token: nobody can forge a turn.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_LLM_CHAT_H
#define LLMC_RUNTIME_LLM_CHAT_H

#include "runtime/llm/Model.h"
#include "runtime/text/jinja/Template.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace llmc::rt {

struct ChatMessage {
  std::string role; ///< "system", "user" or "assistant"
  std::string content;
};

class ChatRenderer {
public:
  /// Unsupported where the model has no tokenizer or no chat template, Corrupt where the template
  /// cannot be parsed.
  static StatusOr<ChatRenderer> create(std::shared_ptr<const Model> model);

  /// Appends the prompt's tokens to `ids`. `addGenerationPrompt`: the assistant speaks next.
  /// InvalidArgument where the template refuses the conversation; the message holds its reason.
  Status encode(std::span<const ChatMessage> messages, bool addGenerationPrompt,
                std::vector<int32_t> &ids) const;

private:
  ChatRenderer(std::shared_ptr<const Model> model, jinja::Template chatTemplate)
      : model(std::move(model)), chatTemplate(std::move(chatTemplate)) {}

  std::shared_ptr<const Model> model;
  jinja::Template chatTemplate;
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_LLM_CHAT_H
