//===- Lexer.h - tokens of PTX ----------------------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_TESTS_PTX_EMULATOR_LEXER_H
#define LLMC_TESTS_PTX_EMULATOR_LEXER_H

#include <cstdint>
#include <string>
#include <string_view>

namespace llmc::ptx {

struct Token {
  enum Kind : uint8_t {
    End,
    Word,      // an opcode with its dots, a name, %tid.x
    Directive, // .reg
    Integer,   // bits
    Float32,   // bits, from 0f
    Float64,   // bits, from 0d or a decimal
    String,    // text without quotes
    Symbol,    // one character
    Bad,
  };
  Kind kind = End;
  char symbol = 0;
  uint32_t line = 1;
  uint64_t bits = 0;
  std::string_view text;
  bool is(char c) const { return kind == Symbol && symbol == c; }
};

/// Splits a text into tokens; comments and preprocessor lines are dropped.
class Lexer {
public:
  explicit Lexer(std::string_view text) : text(text) {}
  Token next();

private:
  void skipBlank();
  Token number(Token token);

  std::string_view text;
  size_t at = 0;
  uint32_t line = 1;
};

} // namespace llmc::ptx

#endif // LLMC_TESTS_PTX_EMULATOR_LEXER_H
