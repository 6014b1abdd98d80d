//===- Utf8.h - walking over UTF-8 that may be broken ----------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Texts come from users and from models, so any byte may stand anywhere. The
// one question here is: what stands at the front of these bytes? The rules are
// those of Unicode's table 3-7: no overlong forms, no surrogates, nothing above
// U+10FFFF; a broken sequence ends before the first byte that cannot continue
// it ("maximal subpart").
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_UTF8_H
#define LLMC_RUNTIME_TEXT_UTF8_H

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace llmc::rt {

/// U+FFFD, which stands for bytes that are no character.
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

enum class Utf8Kind : uint8_t {
  Character, ///< a whole character
  Partial,   ///< the beginning of one, cut off by the end of the text
  Invalid,   ///< can never become one
};

struct Utf8Unit {
  Utf8Kind kind;
  uint8_t size; ///< bytes, at least 1
};

/// What stands at the front of `text`, which is not empty.
inline Utf8Unit firstUtf8Unit(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  uint8_t lead = byte(0);
  if (lead < 0x80)
    return {Utf8Kind::Character, 1};
  if (lead < 0xC2 || lead > 0xF4)
    return {Utf8Kind::Invalid, 1};
  uint8_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // Only the second byte's range depends on the first.
  uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (uint8_t i = 1; i < size; ++i, low = 0x80, high = 0xBF) {
    if (i == text.size())
      return {Utf8Kind::Partial, i};
    if (byte(i) < low || byte(i) > high)
      return {Utf8Kind::Invalid, i};
  }
  return {Utf8Kind::Character, size};
}

/// Bytes at the front of `text` that are whole characters.
inline size_t validUtf8Prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    Utf8Unit unit = firstUtf8Unit(text.substr(at));
    if (unit.kind != Utf8Kind::Character)
      break;
    at += unit.size;
  }
  return at;
}

} // namespace llmc::rt

#endif // LLMC_RUNTIME_TEXT_UTF8_H
