//===- Regex.cpp - PCRE2 over texts that may be broken --------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/Regex.h"

#include "runtime/text/Utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

using namespace llmc::rt;

/// White_Space of Unicode. PCRE's own \s has U+180E too, which is none since
/// Unicode 6.3.
static constexpr std::string_view kWhiteSpace =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

/// Writes \s and \S out.
static std::string expandWhiteSpace(std::string_view pattern) {
  std::string result;
  bool inClass = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    char c = pattern[i];
    if (c != '\\') {
      inClass = inClass ? c != ']' : c == '[';
      result += c;
      continue;
    }
    if (++i == pattern.size()) { // for PCRE to refuse
      result += c;
      break;
    }
    c = pattern[i];
    if (c != 's' && c != 'S')
      result.append({'\\', c});
    else if (inClass)
      result += kWhiteSpace;
    else
      result.append(c == 's' ? "[" : "[^").append(kWhiteSpace).append("]");
  }
  return result;
}

static std::string pcreMessage(int code) {
  PCRE2_UCHAR text[160] = "";
  pcre2_get_error_message(code, text, sizeof(text));
  return reinterpret_cast<const char *>(text);
}

StatusOr<Regex> Regex::create(std::string_view source) {
  std::string pattern = expandWhiteSpace(source);
  int error = 0;
  PCRE2_SIZE where = 0;
  pcre2_code *code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C |
                                       PCRE2_DOLLAR_ENDONLY | PCRE2_NO_AUTO_CAPTURE,
                                   &error, &where, nullptr);
  if (!code)
    return unsupported("a pre-tokenizer's pattern: " + pcreMessage(error));
  // Without a just-in-time compiler the pattern is interpreted.
  (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  Regex regex;
  regex.compiled =
      std::shared_ptr<void>(code, [](void *p) { pcre2_code_free(static_cast<pcre2_code *>(p)); });
  return regex;
}

//===----------------------------------------------------------------------===//
// RegexMatcher
//===----------------------------------------------------------------------===//

static pcre2_match_data *dataOf(void *p) { return static_cast<pcre2_match_data *>(p); }
static pcre2_match_context *contextOf(void *p) { return static_cast<pcre2_match_context *>(p); }

RegexMatcher::RegexMatcher(Patterns patterns)
    : data(pcre2_match_data_create(1, nullptr)), context(pcre2_match_context_create(nullptr)) {
  if (!context)
    return;
  uint32_t limit = patterns == Patterns::Foreign ? 20'000'000u : UINT32_MAX;
  pcre2_set_match_limit(contextOf(context), limit);
  pcre2_set_depth_limit(contextOf(context), limit);
}

RegexMatcher::~RegexMatcher() {
  pcre2_match_data_free(dataOf(data));
  pcre2_match_context_free(contextOf(context));
}

Status RegexMatcher::ready() const {
  if (data && context)
    return {};
  return {StatusCode::ResourceExhausted, "no memory to match the pre-tokenizer's patterns"};
}

Status RegexMatcher::find(const Regex &regex, std::string_view text, size_t from, bool &found) {
  auto match = [&](uint32_t options) {
    return pcre2_match(static_cast<const pcre2_code *>(regex.code()),
                       reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from, options,
                       dataOf(data), contextOf(context));
  };
  int rc = match(PCRE2_NO_UTF_CHECK);
  // Machine code runs on a small stack; the interpreter takes what it needs.
  if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
    rc = match(PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT);
  found = rc >= 0;
  if (rc >= 0 && (begin() < from || end() < begin()))
    return unsupported("pre-tokenizer: a pattern sets the begin of its match");
  if (rc >= 0 || rc == PCRE2_ERROR_NOMATCH)
    return {};
  return internalError("pre-tokenizer: " + pcreMessage(rc));
}

size_t RegexMatcher::begin() const { return pcre2_get_ovector_pointer(dataOf(data))[0]; }
size_t RegexMatcher::end() const { return pcre2_get_ovector_pointer(dataOf(data))[1]; }

//===----------------------------------------------------------------------===//
// RepairedText
//===----------------------------------------------------------------------===//

RepairedText::RepairedText(std::string_view text) : original(text) {
  size_t valid = validUtf8Prefix(text);
  if (valid == text.size())
    return;
  copied = true;
  copy.assign(text.substr(0, valid));
  for (size_t at = valid; at < text.size();) {
    Utf8Unit unit = firstUtf8Unit(text.substr(at));
    if (unit.kind == Utf8Kind::Character) {
      copy.append(text.substr(at, unit.size));
      at += unit.size;
      continue;
    }
    at += unit.size;
    for (size_t i = 0; i < unit.size; ++i) {
      replaced.push_back(copy.size());
      copy.append(kReplacementCharacter);
    }
  }
}

uint32_t RepairedText::place(size_t inText) {
  for (; seen < replaced.size() && replaced[seen] < inText; ++seen)
    surplus += kReplacementCharacter.size() - 1;
  return static_cast<uint32_t>(inText - surplus);
}
