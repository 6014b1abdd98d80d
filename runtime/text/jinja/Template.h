//===- Template.h - chat templates ----------------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A Jinja2 engine for the chat templates of language models: the language of
// Jinja 3.1 without template inheritance, imports and autoescape, as Hugging
// Face's apply_chat_template sets it up (trim_blocks, lstrip_blocks, loop
// controls, raise_exception, strftime_now, a tojson that does not escape).
//
// What the engine does not know (a tag, a filter, a test, a function, a method) is
// refused by parse(), with the line and the name, so that a model whose template
// would fail is refused when it is compiled and not at the first request.
//
// Where it differs from Python, on purpose: integers have 64 bits and fail beyond
// (of the context they become floats), range() makes a list, str methods of a
// string marked safe give plain strings, and lists may be changed in place.
//
// Templates and conversations are hostile input. Rendering is bounded in time,
// memory, recursion and output, and its result says which text came from the
// template (where control tokens count) and which from the conversation (where
// they are plain text); see Text.h.
//
// Sources: Jinja 3.1's lexer.py, parser.py, compiler.py, filters.py and tests.py;
// transformers' utils/chat_template_utils.py.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_JINJA_TEMPLATE_H
#define LLMC_RUNTIME_TEXT_JINJA_TEMPLATE_H

#include "runtime/base/Status.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llmc::rt::jinja {

/// Keeps the order of keys, as Python's dict does.
using Json = nlohmann::ordered_json;

struct ParseOptions {
  /// Accept {% generation %} ... {% endgeneration %}, which marks the assistant's text for
  /// training and prints its body. It is an extension of transformers; plain Jinja2 refuses it.
  bool generationTag = false;
};

/// How the template of a model is parsed, when it is compiled and when it is used: as transformers
/// does, with its `generation` tag.
inline constexpr ParseOptions kChatTemplate = {.generationTag = true};

struct RenderOptions {
  /// Local time for strftime_now; the clock's when absent.
  std::optional<std::tm> now;
  /// Strings (and keys) below these keys of the context come from outside. The one exception is
  /// `role` of a message, which the API sets.
  std::vector<std::string> untrustedKeys = {"messages", "tools", "documents"};

  size_t maxOutputBytes = size_t(16) << 20;
  size_t maxMemoryBytes = size_t(256) << 20;
  size_t maxSteps = 50'000'000; ///< roughly: nodes evaluated plus elements touched
  unsigned maxDepth = 600;      ///< nested evaluations; also of values that are printed or compared
};

/// A piece of the rendered prompt. Control tokens may be parsed in trusted spans only.
struct Span {
  std::string text;
  bool trusted = true;
  bool operator==(const Span &) const = default;
};

struct Program;

/// A parsed template; immutable, so threads may share it.
class Template {
public:
  /// \p name stands in messages only. Fails with Corrupt (bad syntax) or Unsupported.
  static StatusOr<Template> parse(std::string_view source, std::string_view name,
                                  const ParseOptions &options = {});

  /// \p context: an object with messages, tools, add_generation_prompt, bos_token, ...
  /// Fails with InvalidArgument (what Python would raise, raise_exception's message included) or
  /// ResourceExhausted (a limit of the options).
  StatusOr<std::string> render(const Json &context, const RenderOptions &options = {}) const;
  /// The same text in maximal spans of equal trust.
  StatusOr<std::vector<Span>> renderSpans(const Json &context,
                                          const RenderOptions &options = {}) const;

private:
  std::shared_ptr<const Program> program;
};

/// Parses \p source and \p contextJson, then renders: the body of `llmc render-template`.
StatusOr<std::string> renderTemplate(std::string_view source, std::string_view name,
                                     std::string_view contextJson,
                                     const RenderOptions &options = {});

} // namespace llmc::rt::jinja

#endif // LLMC_RUNTIME_TEXT_JINJA_TEMPLATE_H
