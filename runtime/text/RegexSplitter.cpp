//===- RegexSplitter.cpp - cuts a text into words -------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/RegexSplitter.h"

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
    c = pattern[++i];
    if (c != 's' && c != 'S')
      result.append({'\\', c});
    else if (inClass)
      result += kWhiteSpace;
    else
      result.append(c == 's' ? "[" : "[^").append(kWhiteSpace).append("]");
  }
  return result;
}

static Status pcreError(const char *what, int code) {
  PCRE2_UCHAR text[160] = "";
  pcre2_get_error_message(code, text, sizeof(text));
  return internalError(std::string(what) + ": " + reinterpret_cast<const char *>(text));
}

StatusOr<RegexSplitter> RegexSplitter::create(std::span<const SplitStep> steps) {
  RegexSplitter splitter;
  for (const SplitStep &step : steps) {
    std::string pattern = expandWhiteSpace(step.pattern);
    int error = 0;
    PCRE2_SIZE where = 0;
    pcre2_code *code =
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                      PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY | PCRE2_NO_AUTO_CAPTURE, &error,
                      &where, nullptr);
    if (!code)
      return pcreError("pre-tokenizer pattern", error);
    // Without a just-in-time compiler the pattern is interpreted.
    (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    splitter.steps.push_back(
        {std::shared_ptr<void>(code,
                               [](void *p) { pcre2_code_free(static_cast<pcre2_code *>(p)); }),
         step.groupsOfThree});
  }
  return splitter;
}

/// Appends the ends of the groups of three characters that text[begin, end) is
/// cut into from its end; the first may be shorter.
static void cutIntoThrees(std::string_view text, size_t begin, size_t end,
                          std::vector<uint32_t> &ends) {
  auto next = [&](size_t at) { return at + firstUtf8Unit(text.substr(at)).size; };
  size_t characters = 0;
  for (size_t at = begin; at < end; at = next(at))
    ++characters;
  while (begin < end) {
    begin = next(begin);
    if (--characters % 3 == 0)
      ends.push_back(static_cast<uint32_t>(begin));
  }
}

namespace {
/// What one thread needs to run patterns.
class Matcher {
public:
  Matcher()
      : data(pcre2_match_data_create(1, nullptr)), context(pcre2_match_context_create(nullptr)) {
    // The patterns are ours and take linear time; a long text is no reason to stop.
    if (context) {
      pcre2_set_match_limit(context, UINT32_MAX);
      pcre2_set_depth_limit(context, UINT32_MAX);
    }
  }
  ~Matcher() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
  }
  Matcher(const Matcher &) = delete;
  Matcher &operator=(const Matcher &) = delete;

  bool ok() const { return data && context; }

  /// The first match at or after `from`: > 0 found, PCRE2_ERROR_NOMATCH, or an error.
  int find(const void *code, std::string_view text, size_t from) {
    int rc = match(code, text, from, PCRE2_NO_UTF_CHECK);
    // Machine code runs on a small stack; the interpreter takes what it needs.
    return rc == PCRE2_ERROR_JIT_STACKLIMIT
               ? match(code, text, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT)
               : rc;
  }
  size_t begin() const { return pcre2_get_ovector_pointer(data)[0]; }
  size_t end() const { return pcre2_get_ovector_pointer(data)[1]; }

private:
  int match(const void *code, std::string_view text, size_t from, uint32_t options) {
    return pcre2_match(static_cast<const pcre2_code *>(code),
                       reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from, options, data,
                       context);
  }

  pcre2_match_data *data;
  pcre2_match_context *context;
};
} // namespace

Status RegexSplitter::splitValid(std::string_view text, std::vector<uint32_t> &ends) const {
  Matcher matcher;
  if (!matcher.ok())
    return {StatusCode::ResourceExhausted, "no memory to match the pre-tokenizer's patterns"};

  ends.assign(1, static_cast<uint32_t>(text.size()));
  std::vector<uint32_t> pieces;
  for (const Step &step : steps) {
    pieces.swap(ends);
    ends.clear();
    size_t base = 0;
    for (uint32_t pieceEnd : pieces) {
      std::string_view piece = text.substr(base, pieceEnd - base);
      for (size_t at = 0; at < piece.size();) { // no pattern matches the empty text
        int rc = matcher.find(step.code.get(), piece, at);
        if (rc == PCRE2_ERROR_NOMATCH) {
          ends.push_back(pieceEnd);
          break;
        }
        if (rc < 0)
          return pcreError("pre-tokenizer", rc);
        size_t begin = base + matcher.begin(), end = base + matcher.end();
        if (matcher.begin() > at)
          ends.push_back(static_cast<uint32_t>(begin));
        if (step.groupsOfThree)
          cutIntoThrees(text, begin, end, ends);
        else
          ends.push_back(static_cast<uint32_t>(end));
        at = matcher.end();
      }
      base = pieceEnd;
    }
  }
  return {};
}

Status RegexSplitter::split(std::string_view text, std::vector<uint32_t> &ends) const {
  if (text.size() >= UINT32_MAX)
    return outOfRange("a text of 4 GiB or more cannot be tokenized in one piece");
  ends.clear();
  if (text.empty())
    return {};
  size_t valid = validUtf8Prefix(text);
  if (valid == text.size())
    return splitValid(text, ends);

  // Cut a repaired copy, and carry the cuts over.
  std::string repaired(text.substr(0, valid));
  std::vector<size_t> replaced; // where `repaired` holds U+FFFD for one byte
  for (size_t at = valid; at < text.size();) {
    Utf8Unit unit = firstUtf8Unit(text.substr(at));
    if (unit.kind == Utf8Kind::Character) {
      repaired.append(text.substr(at, unit.size));
      at += unit.size;
      continue;
    }
    at += unit.size;
    for (size_t i = 0; i < unit.size; ++i) {
      replaced.push_back(repaired.size());
      repaired.append(kReplacementCharacter);
    }
  }
  if (repaired.size() >= UINT32_MAX)
    return outOfRange("a text of 4 GiB or more cannot be tokenized in one piece");
  LLMC_RETURN_IF_ERROR(splitValid(repaired, ends));
  size_t seen = 0, surplus = 0;
  for (uint32_t &end : ends) {
    for (; seen < replaced.size() && replaced[seen] < end; ++seen)
      surplus += kReplacementCharacter.size() - 1;
    end -= static_cast<uint32_t>(surplus);
  }
  return {};
}
