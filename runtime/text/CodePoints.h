//===- CodePoints.h - characters and their classes --------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Code points of texts that may be broken: a byte that belongs to no character is
// a code point of its own, numbered from 0xDC00, so that nothing is lost. Classes
// and mappings are those of Unicode, from utf8proc.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_CODEPOINTS_H
#define LLMC_RUNTIME_TEXT_CODEPOINTS_H

#include <cstdint>
#include <string>
#include <string_view>

namespace llmc::rt {

struct CodePoint {
  uint32_t value;
  uint32_t size; ///< bytes in the text, at least 1
};

/// The first and the last code point of a text that is not empty.
CodePoint firstCodePoint(std::string_view text);
CodePoint lastCodePoint(std::string_view text);

void appendCodePoint(uint32_t value, std::string &out);

/// White_Space.
bool isWhiteSpace(uint32_t codePoint);
/// Letters, marks, decimal digits, connectors and joiners: \w of most regex engines.
bool isWordCharacter(uint32_t codePoint);

enum class NormalForm : uint8_t { Nfc, Nfd, Nfkc, Nfkd };

/// Appends `text` in a normalization form; broken bytes stay where they are. False if
/// there is no memory.
[[nodiscard]] bool appendNormalized(std::string_view text, NormalForm form, std::string &out);

/// Appends `text` in lower case, one code point at a time (no final sigma).
void appendLowercase(std::string_view text, std::string &out);

/// Bytes of the first grapheme cluster of a text that is not empty.
size_t firstGrapheme(std::string_view text);

} // namespace llmc::rt

#endif // LLMC_RUNTIME_TEXT_CODEPOINTS_H
