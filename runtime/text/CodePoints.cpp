//===- CodePoints.cpp - characters and their classes ----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/CodePoints.h"

#include "runtime/text/Utf8.h"

#include <cstdlib>
#include <utf8proc.h>

using namespace llmc::rt;

static constexpr uint32_t kBrokenByte = 0xDC00;

static bool isBroken(uint32_t value) { return value >= kBrokenByte && value <= kBrokenByte + 0xFF; }

CodePoint llmc::rt::firstCodePoint(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  uint8_t lead = byte(0);
  if (lead < 0x80)
    return {lead, 1};
  Utf8Unit unit = firstUtf8Unit(text);
  if (unit.kind != Utf8Kind::Character)
    return {kBrokenByte + lead, 1};
  uint32_t value = lead & (0x7Fu >> unit.size);
  for (uint8_t i = 1; i < unit.size; ++i)
    value = value << 6 | (byte(i) & 0x3Fu);
  return {value, unit.size};
}

CodePoint llmc::rt::lastCodePoint(std::string_view text) {
  for (size_t size = 1; size <= 4 && size <= text.size(); ++size) {
    std::string_view tail = text.substr(text.size() - size);
    if ((static_cast<uint8_t>(tail[0]) & 0xC0) == 0x80)
      continue;
    CodePoint c = firstCodePoint(tail);
    if (c.size == size)
      return c;
    break;
  }
  return {kBrokenByte + static_cast<uint8_t>(text.back()), 1};
}

void llmc::rt::appendCodePoint(uint32_t value, std::string &out) {
  if (isBroken(value)) {
    out += static_cast<char>(value - kBrokenByte);
    return;
  }
  utf8proc_uint8_t bytes[4];
  out.append(reinterpret_cast<char *>(bytes),
             utf8proc_encode_char(static_cast<utf8proc_int32_t>(value), bytes));
}

bool llmc::rt::isWhiteSpace(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool llmc::rt::isWordCharacter(uint32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
  case UTF8PROC_CATEGORY_LU:
  case UTF8PROC_CATEGORY_LL:
  case UTF8PROC_CATEGORY_LT:
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_LO:
  case UTF8PROC_CATEGORY_MN:
  case UTF8PROC_CATEGORY_MC:
  case UTF8PROC_CATEGORY_ME:
  case UTF8PROC_CATEGORY_ND:
  case UTF8PROC_CATEGORY_NL:
  case UTF8PROC_CATEGORY_PC:
    return true;
  default:
    // Joiners, and the circled and squared letters.
    return c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) ||
           (c >= 0x1F130 && c <= 0x1F189 && (c - 0x1F130) % 0x20 < 0x1A);
  }
}

static utf8proc_option_t optionsOf(NormalForm form) {
  bool compose = form == NormalForm::Nfc || form == NormalForm::Nfkc;
  bool compat = form == NormalForm::Nfkc || form == NormalForm::Nfkd;
  return static_cast<utf8proc_option_t>(UTF8PROC_STABLE |
                                        (compose ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
                                        (compat ? UTF8PROC_COMPAT : 0));
}

bool llmc::rt::appendNormalized(std::string_view text, NormalForm form, std::string &out) {
  while (!text.empty()) {
    size_t ascii = 0;
    while (ascii < text.size() && static_cast<uint8_t>(text[ascii]) < 0x80)
      ++ascii;
    // A mark behind the last of them may change it.
    size_t plain = ascii == text.size() ? ascii : ascii ? ascii - 1 : 0;
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    size_t valid = validUtf8Prefix(text);
    if (valid) {
      utf8proc_uint8_t *made = nullptr;
      utf8proc_ssize_t size =
          utf8proc_map(reinterpret_cast<const utf8proc_uint8_t *>(text.data()),
                       static_cast<utf8proc_ssize_t>(valid), &made, optionsOf(form));
      if (size < 0)
        return false;
      out.append(reinterpret_cast<char *>(made), static_cast<size_t>(size));
      std::free(made);
      text.remove_prefix(valid);
    }
    if (!text.empty()) { // a broken byte
      out += text.front();
      text.remove_prefix(1);
    }
  }
  return true;
}

void llmc::rt::appendLowercase(std::string_view text, std::string &out) {
  for (CodePoint c; !text.empty(); text.remove_prefix(c.size)) {
    c = firstCodePoint(text);
    if (c.value == 0x130) // the only one that becomes two
      out += "i\xCC\x87";
    else if (isBroken(c.value))
      out += text[0];
    else
      appendCodePoint(
          static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c.value))), out);
  }
}

size_t llmc::rt::firstGrapheme(std::string_view text) {
  utf8proc_int32_t state = 0;
  CodePoint previous = firstCodePoint(text);
  size_t at = previous.size;
  while (at < text.size()) {
    CodePoint next = firstCodePoint(text.substr(at));
    if (isBroken(previous.value) || isBroken(next.value) ||
        utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(previous.value),
                                         static_cast<utf8proc_int32_t>(next.value), &state))
      break;
    at += next.size;
    previous = next;
  }
  return at;
}
