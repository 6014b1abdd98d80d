//===- Unicode.h - code points as Python's str sees them ------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Jinja templates count, slice, trim and change case by code point. Strings are
// kept as UTF-8; a byte that is not part of a well-formed sequence counts as one
// code point of its own (numbered from 0xDC00, as Python's surrogateescape does),
// so that no input can derail the engine and bytes are never lost.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_JINJA_UNICODE_H
#define LLMC_RUNTIME_TEXT_JINJA_UNICODE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace llmc::rt::jinja {

struct CodePoint {
  uint32_t value = 0;
  uint32_t bytes = 0; ///< length of its UTF-8 form, at least 1
};

/// The code point that begins at byte \p at; \p at must be inside \p text.
CodePoint decodeUtf8(std::string_view text, size_t at);
void appendUtf8(std::string &out, uint32_t codePoint);
size_t countCodePoints(std::string_view text);

bool isAlpha(uint32_t codePoint);
bool isDecimal(uint32_t codePoint);
bool isDigit(uint32_t codePoint);
bool isNumeric(uint32_t codePoint);
bool isPrintable(uint32_t codePoint);
bool isSpace(uint32_t codePoint);
bool isCased(uint32_t codePoint);
/// A line boundary of str.splitlines.
bool isLineBreak(uint32_t codePoint);

/// Full case mappings, without the context rule for a final sigma.
void appendLower(std::string &out, uint32_t codePoint);
void appendUpper(std::string &out, uint32_t codePoint);
void appendTitle(std::string &out, uint32_t codePoint);

/// Whether \p predicate holds for every code point; false for an empty text.
template <typename Predicate> bool allCodePoints(std::string_view text, Predicate predicate) {
  for (size_t at = 0; at < text.size();) {
    CodePoint c = decodeUtf8(text, at);
    if (!predicate(c.value))
      return false;
    at += c.bytes;
  }
  return !text.empty();
}

} // namespace llmc::rt::jinja

#endif // LLMC_RUNTIME_TEXT_JINJA_UNICODE_H
