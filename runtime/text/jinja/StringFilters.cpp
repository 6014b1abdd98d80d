//===- StringFilters.cpp - filters that make strings ----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/jinja/Builtins.h"
#include "runtime/text/jinja/Format.h"
#include "runtime/text/jinja/TextOperations.h"
#include "runtime/text/jinja/Unicode.h"

namespace llmc::rt::jinja {
namespace {

StatusOr<Value> filterCapitalize(Runtime &runtime, const Value &self, Args &) {
  LLMC_ASSIGN_OR_RETURN(Value string, runtime.str(self));
  return mapCase(runtime, string.text(), appendTitle, appendLower);
}

StatusOr<Value> filterLower(Runtime &runtime, const Value &self, Args &) {
  LLMC_ASSIGN_OR_RETURN(Value string, runtime.str(self));
  return mapCase(runtime, string.text(), appendLower, appendLower);
}

StatusOr<Value> filterUpper(Runtime &runtime, const Value &self, Args &) {
  LLMC_ASSIGN_OR_RETURN(Value string, runtime.str(self));
  return mapCase(runtime, string.text(), appendUpper, appendUpper);
}

/// Unlike str.title(), words end at white space and opening brackets only.
StatusOr<Value> filterTitle(Runtime &runtime, const Value &self, Args &) {
  LLMC_ASSIGN_OR_RETURN(Value string, runtime.str(self));
  const Text &text = string.text();
  TextBuilder out = runtime.builder();
  std::string mapped;
  bool inWord = false;
  for (size_t at = 0; at < text.size();) {
    CodePoint c = decodeUtf8(text.str(), at);
    bool separates = isSpace(c.value) || c.value == '-' || c.value == '(' || c.value == '{' ||
                     c.value == '[' || c.value == '<';
    mapped.clear();
    (inWord ? appendLower : appendUpper)(mapped, c.value);
    out.add(mapped, text.trustAt(at));
    inWord = !separates;
    at += c.bytes;
  }
  return runtime.finish(std::move(out));
}

StatusOr<Value> filterCenter(Runtime &runtime, const Value &self, Args &args) {
  LLMC_ASSIGN_OR_RETURN(Value string, runtime.str(self));
  LLMC_ASSIGN_OR_RETURN(int64_t width, args.integer(0, 80));
  return padText(runtime, string.text(), width, Text(" "), Side::Both);
}

StatusOr<Value> filterEscape(Runtime &runtime, const Value &self, Args &) {
  if (self.isMarkup())
    return self;
  LLMC_ASSIGN_OR_RETURN(Value string, runtime.str(self));
  TextBuilder out = runtime.builder();
  appendEscaped(out, string.text());
  return runtime.finish(std::move(out), true);
}

StatusOr<Value> filterSafe(Runtime &runtime, const Value &self, Args &) {
  LLMC_ASSIGN_OR_RETURN(Value string, runtime.str(self));
  return runtime.string(string.text(), true);
}

StatusOr<Value> filterString(Runtime &runtime, const Value &self, Args &) {
  return runtime.str(self);
}

StatusOr<Value> filterFormat(Runtime &runtime, const Value &self, Args &args) {
  LLMC_ASSIGN_OR_RETURN(Value string, runtime.str(self));
  if (args.named.empty())
    return formatPercent(runtime, string.text(), runtime.tuple(args.positional));
  if (!args.positional.empty())
    return raised("can't handle positional and keyword arguments at the same time");
  std::shared_ptr<Dict> dict = runtime.makeDict();
  for (const auto &[key, value] : args.named)
    dict->set(Dict::textCode(key.str()), key, value);
  return formatPercent(runtime, string.text(), Value::dict(std::move(dict)));
}

StatusOr<Value> filterIndent(Runtime &runtime, const Value &self, Args &args) {
  if (!self.isString())
    return raised("indent() needs a str, not " + std::string(typeName(self)));
  Text indention("    ");
  if (args[0] && args[0]->isString()) {
    indention = args[0]->text();
  } else {
    LLMC_ASSIGN_OR_RETURN(int64_t width, args.integer(0, 4));
    LLMC_RETURN_IF_ERROR(runtime.reserve(width > 0 ? static_cast<size_t>(width) : 0));
    indention = Text(std::string(width > 0 ? static_cast<size_t>(width) : 0, ' '));
  }
  bool first = args.flag(1, false), blank = args.flag(2, false);
  TextBuilder out = runtime.builder();
  if (first)
    out.add(indention);
  // Jinja splits the text with a newline put behind it, so one at its end makes an empty line.
  Text text = self.text();
  text.append("\n", Trust::Trusted);
  std::vector<ByteRange> lines = splitLines(text.str(), false);
  for (size_t i = 0; i < lines.size() && !out.overflowed(); ++i) {
    if (i != 0)
      out.add("\n");
    if (i != 0 && (blank || lines[i].begin != lines[i].end))
      out.add(indention);
    out.add(text, lines[i].begin, lines[i].end);
  }
  return runtime.finish(std::move(out), self.isMarkup());
}

StatusOr<Value> filterReplace(Runtime &runtime, const Value &self, Args &args) {
  LLMC_ASSIGN_OR_RETURN(Value string, runtime.str(self));
  LLMC_ASSIGN_OR_RETURN(Value old, runtime.str(*args[0]));
  LLMC_ASSIGN_OR_RETURN(Value replacement, runtime.str(*args[1]));
  int64_t count = -1;
  if (args[2] && !args[2]->isNone()) {
    LLMC_ASSIGN_OR_RETURN(count, args.integer(2, -1));
  }
  return replaceText(runtime, string.text(), old.text(), replacement.text(), count);
}

StatusOr<Value> filterTrim(Runtime &runtime, const Value &self, Args &args) {
  LLMC_ASSIGN_OR_RETURN(Value string, runtime.str(self));
  LLMC_ASSIGN_OR_RETURN(const Text *chars, args.text(0));
  LLMC_RETURN_IF_ERROR(runtime.tick(string.text().size() * (chars ? chars->size() : 1) / 16));
  ByteRange kept = stripRange(string.str(), chars, Side::Both);
  return runtime.string(string.text().slice(kept.begin, kept.end), string.isMarkup());
}

StatusOr<Value> filterTruncate(Runtime &runtime, const Value &self, Args &args) {
  if (self.isUndefined())
    return self;
  if (!self.isString())
    return raised("truncate() needs a str, not " + std::string(typeName(self)));
  LLMC_ASSIGN_OR_RETURN(int64_t length, args.integer(0, 255));
  bool killWords = args.flag(1, false);
  LLMC_ASSIGN_OR_RETURN(const Text *end, args.text(2));
  const Text dots("...");
  end = end ? end : &dots;
  int64_t leeway = 5;
  if (args[3] && !args[3]->isNone()) {
    LLMC_ASSIGN_OR_RETURN(leeway, args.integer(3, 5));
  }
  int64_t kept = length - static_cast<int64_t>(countCodePoints(end->str()));
  if (kept < 0 || leeway < 0)
    return raised("truncate() needs a length of at least that of its end");
  const Text &text = self.text();
  int64_t size = static_cast<int64_t>(countCodePoints(text.str()));
  if (size <= length || size - length <= leeway)
    return self;
  size_t cut = 0;
  for (; kept > 0; --kept)
    cut += decodeUtf8(text.str(), cut).bytes;
  size_t space = text.str().substr(0, cut).rfind(' ');
  if (!killWords && space != std::string_view::npos)
    cut = space;
  TextBuilder out = runtime.builder();
  out.add(text, 0, cut);
  out.add(*end);
  return runtime.finish(std::move(out), self.isMarkup());
}

StatusOr<Value> filterWordcount(Runtime &runtime, const Value &self, Args &) {
  LLMC_ASSIGN_OR_RETURN(Value string, runtime.str(self));
  int64_t words = 0;
  bool inWord = false;
  for (size_t at = 0; at < string.text().size();) {
    CodePoint c = decodeUtf8(string.str(), at);
    bool isWord = c.value == '_' || isAlpha(c.value) || isNumeric(c.value);
    words += isWord && !inWord;
    inWord = isWord;
    at += c.bytes;
  }
  return Value::integer(words);
}

constexpr Builtin table[] = {
    {"capitalize", "", filterCapitalize},
    {"center", "width?", filterCenter},
    {"e", "", filterEscape},
    {"escape", "", filterEscape},
    {"format", "*", filterFormat},
    {"indent", "width? first? blank?", filterIndent},
    {"lower", "", filterLower},
    {"replace", "old new count?", filterReplace},
    {"safe", "", filterSafe},
    {"string", "", filterString},
    {"title", "", filterTitle},
    {"trim", "chars?", filterTrim},
    {"truncate", "length? killwords? end? leeway?", filterTruncate},
    {"upper", "", filterUpper},
    {"wordcount", "", filterWordcount},
};

} // namespace

std::span<const Builtin> stringFilters() { return table; }

} // namespace llmc::rt::jinja
