//===- Lexer.cpp - tokens of PTX ------------------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/emulator/Lexer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace llmc::ptx;

static bool isAlpha(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}
static bool isDigit(char c) { return c >= '0' && c <= '9'; }
static bool isWord(char c) { return isAlpha(c) || isDigit(c); }

void Lexer::skipBlank() {
  while (at < text.size()) {
    char c = text[at];
    if (c == '\n') {
      ++line;
      ++at;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      ++at;
    } else if (text.substr(at, 2) == "//" || c == '#') {
      while (at < text.size() && text[at] != '\n')
        ++at;
    } else if (text.substr(at, 2) == "/*") {
      size_t end = text.find("*/", at + 2);
      size_t stop = end == std::string_view::npos ? text.size() : end + 2;
      for (; at < stop; ++at)
        line += text[at] == '\n';
    } else {
      return;
    }
  }
}

static int digitValue(char c) {
  if (isDigit(c))
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  return 99;
}

Token Lexer::number(Token token) {
  size_t start = at;
  auto digits = [&](int base) {
    uint64_t value = 0;
    while (at < text.size() && digitValue(text[at]) < base)
      value = value * base + digitValue(text[at++]);
    return value;
  };
  token.kind = Token::Integer;
  char second = at + 1 < text.size() && text[at] == '0' ? text[at + 1] : 0;
  if (second == 'f' || second == 'F' || second == 'd' || second == 'D') {
    bool wide = second == 'd' || second == 'D';
    at += 2;
    size_t first = at;
    token.bits = digits(16);
    token.kind = wide ? Token::Float64 : Token::Float32;
    if (at - first != (wide ? 16 : 8))
      token.kind = Token::Bad;
  } else if (second == 'x' || second == 'X') {
    at += 2;
    token.bits = digits(16);
  } else if (second == 'b' || second == 'B') {
    at += 2;
    token.bits = digits(2);
  } else {
    size_t end = at;
    while (end < text.size() && isDigit(text[end]))
      ++end;
    bool decimal = end < text.size() && (text[end] == '.' || text[end] == 'e' || text[end] == 'E');
    if (decimal) {
      char buffer[64];
      size_t length = std::min<size_t>(text.size() - at, sizeof(buffer) - 1);
      memcpy(buffer, text.data() + at, length);
      buffer[length] = 0;
      char *stop = buffer;
      double value = strtod(buffer, &stop);
      memcpy(&token.bits, &value, 8);
      at += stop - buffer;
      token.kind = stop == buffer ? Token::Bad : Token::Float64;
      if (stop == buffer)
        ++at;
    } else {
      token.bits = digits(second && isDigit(second) ? 8 : 10);
    }
  }
  if (token.kind == Token::Integer && at < text.size() && text[at] == 'U')
    ++at;
  token.text = text.substr(start, at - start);
  return token;
}

Token Lexer::next() {
  skipBlank();
  Token token;
  token.line = line;
  if (at >= text.size())
    return token;
  size_t start = at;
  char c = text[at];
  if (isDigit(c))
    return number(token);
  bool directive = c == '.' && at + 1 < text.size() && isAlpha(text[at + 1]);
  if (isAlpha(c) || directive) {
    ++at;
    while (at < text.size()) {
      if (isWord(text[at]))
        ++at;
      else if (!directive && text[at] == '.' && at + 1 < text.size() && isWord(text[at + 1]))
        ++at;
      else if (text.substr(at, 2) == "::" && at + 2 < text.size() && isWord(text[at + 2]))
        at += 2;
      else
        break;
    }
    token.kind = directive ? Token::Directive : Token::Word;
    token.text = text.substr(start, at - start);
    return token;
  }
  if (c == '"') {
    size_t end = text.find('"', at + 1);
    if (end == std::string_view::npos) {
      token.kind = Token::Bad;
      at = text.size();
      return token;
    }
    token.kind = Token::String;
    token.text = text.substr(at + 1, end - at - 1);
    for (char inside : token.text)
      line += inside == '\n';
    at = end + 1;
    return token;
  }
  token.kind = Token::Symbol;
  token.symbol = c;
  token.text = text.substr(at, 1);
  ++at;
  return token;
}
