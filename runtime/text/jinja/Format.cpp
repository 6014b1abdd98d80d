//===- Format.cpp - Python's ways to turn values into text ----------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/jinja/Format.h"

#include "runtime/text/jinja/TextOperations.h"
#include "runtime/text/jinja/Unicode.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

namespace llmc::rt::jinja {
namespace {

/// A numeral without white space around it, and with single underscores between digits removed.
std::optional<std::string> cleanNumeral(std::string_view text) {
  ByteRange range = stripRange(text, nullptr, Side::Both);
  text = text.substr(range.begin, range.end - range.begin);
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      result += text[i];
      continue;
    }
    auto isAlnum = [](char c) {
      return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
    };
    if (i == 0 || i + 1 == text.size() || !isAlnum(text[i - 1]) || !isAlnum(text[i + 1]))
      return std::nullopt;
  }
  return result;
}

} // namespace

std::string formatFloat(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  char buffer[40];
  auto shortest =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  std::string_view digits(buffer, static_cast<size_t>(shortest.ptr - buffer));
  size_t e = digits.find('e');
  int exponent = 0;
  std::from_chars(digits.data() + e + 1 + (digits[e + 1] == '+'), digits.data() + digits.size(),
                  exponent);
  if (exponent < -4 || exponent >= 16)
    return std::string(digits); // Python writes at least two digits of exponent, as to_chars does
  auto fixed = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed);
  std::string result(buffer, fixed.ptr);
  return result.find('.') == std::string::npos ? result + ".0" : result;
}

std::string formatFixed(double value, int digits) {
  std::string result(static_cast<size_t>(digits) + 330, '\0');
  auto end = std::to_chars(result.data(), result.data() + result.size(), value,
                           std::chars_format::fixed, digits);
  result.resize(static_cast<size_t>(end.ptr - result.data()));
  return result;
}

std::optional<int64_t> parseInt(std::string_view text, int base) {
  std::optional<std::string> numeral = cleanNumeral(text);
  if (!numeral)
    return std::nullopt;
  std::string_view digits = *numeral;
  bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+'))
    digits.remove_prefix(1);
  auto prefixBase = [&] {
    if (digits.size() < 3 || digits[0] != '0')
      return 0;
    char letter = static_cast<char>(digits[1] | 0x20);
    return letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
  };
  if (int implied = prefixBase(); implied != 0 && (base == implied || base == 0)) {
    digits.remove_prefix(2);
    base = implied;
  }
  uint64_t magnitude = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), magnitude,
                                      base == 0 ? 10 : base);
  constexpr uint64_t most = std::numeric_limits<int64_t>::max();
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size() ||
      magnitude > most + negative)
    return std::nullopt;
  return static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
}

std::optional<double> parseFloat(std::string_view text) {
  std::optional<std::string> numeral = cleanNumeral(text);
  if (!numeral)
    return std::nullopt;
  std::string_view digits = *numeral;
  if (digits.starts_with('+'))
    digits.remove_prefix(1);
  if (digits.empty() || digits.starts_with('+') || digits.find('(') != std::string_view::npos)
    return std::nullopt;
  double value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size() || error == std::errc::invalid_argument)
    return std::nullopt;
  if (error == std::errc::result_out_of_range) // infinite, or too small to tell from zero
    return std::strtod(std::string(digits).c_str(), nullptr);
  return value;
}

void appendQuoted(TextBuilder &out, const Text &text) {
  std::string_view bytes = text.str();
  bool useDouble = bytes.find('\'') != bytes.npos && bytes.find('"') == bytes.npos;
  char quote = useDouble ? '"' : '\'';
  out.add(std::string_view(&quote, 1));
  for (size_t at = 0; at < bytes.size() && !out.overflowed();) {
    CodePoint c = decodeUtf8(bytes, at);
    Trust trust = text.trustAt(at);
    char escape[12];
    if (c.value == '\\' || c.value == static_cast<unsigned char>(quote)) {
      out.add(std::string{'\\', static_cast<char>(c.value)}, trust);
    } else if (c.value == '\n' || c.value == '\r' || c.value == '\t') {
      out.add(c.value == '\n' ? "\\n" : c.value == '\r' ? "\\r" : "\\t", trust);
    } else if (isPrintable(c.value)) {
      out.add(text, at, at + c.bytes);
    } else {
      const char *form = c.value < 0x100 ? "\\x%02x" : c.value < 0x10000 ? "\\u%04x" : "\\U%08x";
      std::snprintf(escape, sizeof escape, form, c.value);
      out.add(escape, trust);
    }
    at += c.bytes;
  }
  out.add(std::string_view(&quote, 1));
}

void appendEscaped(TextBuilder &out, const Text &text) {
  constexpr std::string_view special = "&<>'\"";
  constexpr std::string_view entities[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
  std::string_view bytes = text.str();
  for (size_t at = 0; at < bytes.size() && !out.overflowed();) {
    size_t found = std::min(bytes.find_first_of(special, at), bytes.size());
    out.add(text, at, found);
    if (found < bytes.size())
      out.add(entities[special.find(bytes[found])], text.trustAt(found));
    at = found + 1;
  }
}

} // namespace llmc::rt::jinja
