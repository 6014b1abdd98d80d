//===- Unicode.cpp - code points as Python's str sees them ----------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/jinja/Unicode.h"

#include "runtime/text/Utf8.h"

#include <algorithm>
#include <iterator>

namespace llmc::rt::jinja {
namespace {

struct Range {
  uint32_t first, last;
};
struct CaseRange {
  uint32_t first, last, stride;
  int32_t delta;
};
struct SpecialCase {
  uint32_t codePoint;
  const char *mapped;
};

#include "runtime/text/jinja/UnicodeTables.inc"

template <size_t N> bool contains(const Range (&table)[N], uint32_t codePoint) {
  auto it = std::partition_point(std::begin(table), std::end(table),
                                 [&](const Range &r) { return r.last < codePoint; });
  return it != std::end(table) && it->first <= codePoint;
}

template <size_t N> uint32_t mapCase(const CaseRange (&table)[N], uint32_t codePoint) {
  auto it = std::partition_point(std::begin(table), std::end(table),
                                 [&](const CaseRange &r) { return r.last < codePoint; });
  bool inside =
      it != std::end(table) && it->first <= codePoint && (codePoint - it->first) % it->stride == 0;
  return inside ? codePoint + it->delta : codePoint;
}

template <size_t N>
bool appendSpecial(std::string &out, const SpecialCase (&table)[N], uint32_t codePoint) {
  auto it = std::partition_point(std::begin(table), std::end(table),
                                 [&](const SpecialCase &s) { return s.codePoint < codePoint; });
  if (it == std::end(table) || it->codePoint != codePoint)
    return false;
  out += it->mapped;
  return true;
}

bool isInvalidByte(uint32_t codePoint) { return codePoint >= 0xDC80 && codePoint <= 0xDCFF; }

} // namespace

CodePoint decodeUtf8(std::string_view text, size_t at) {
  auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80)
    return {lead, 1};
  Utf8Unit unit = firstUtf8Unit(text.substr(at));
  if (unit.kind != Utf8Kind::Character)
    return {0xDC00u + lead, 1};
  uint32_t value = lead & (0x7Fu >> unit.size);
  for (uint8_t i = 1; i < unit.size; ++i)
    value = value << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3Fu);
  return {value, unit.size};
}

void appendUtf8(std::string &out, uint32_t c) {
  if (isInvalidByte(c)) {
    out += static_cast<char>(c - 0xDC00);
  } else if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

size_t countCodePoints(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); at += decodeUtf8(text, at).bytes)
    ++count;
  return count;
}

bool isAlpha(uint32_t c) { return contains(kAlpha, c); }
bool isDecimal(uint32_t c) { return contains(kDecimal, c); }
bool isDigit(uint32_t c) { return contains(kDigit, c); }
bool isNumeric(uint32_t c) { return contains(kNumeric, c); }
bool isPrintable(uint32_t c) { return !isInvalidByte(c) && !contains(kUnprintable, c); }

bool isSpace(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

bool isCased(uint32_t c) {
  std::string self, lower, upper;
  appendUtf8(self, c);
  appendLower(lower, c);
  appendUpper(upper, c);
  return self != lower || self != upper;
}

bool isLineBreak(uint32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

void appendLower(std::string &out, uint32_t c) {
  if (!appendSpecial(out, kSpecialLower, c))
    appendUtf8(out, mapCase(kLower, c));
}

void appendUpper(std::string &out, uint32_t c) {
  if (!appendSpecial(out, kSpecialUpper, c))
    appendUtf8(out, mapCase(kUpper, c));
}

void appendTitle(std::string &out, uint32_t c) {
  if (!appendSpecial(out, kSpecialTitle, c))
    appendUpper(out, c);
}

} // namespace llmc::rt::jinja
