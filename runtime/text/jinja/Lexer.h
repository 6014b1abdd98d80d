//===- Lexer.h - template source to tokens --------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Applies all white space rules (trim_blocks, lstrip_blocks, the markers - and +,
// no trailing newline) and drops comments, so that the parser sees data, the
// delimiters of tags, and the tokens between them.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_JINJA_LEXER_H
#define LLMC_RUNTIME_TEXT_JINJA_LEXER_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llmc::rt::jinja {

struct Token {
  enum class Kind : uint8_t {
    Data,
    BlockBegin,
    BlockEnd,
    VariableBegin,
    VariableEnd,
    Name,
    String,
    Integer,
    Float,
    Operator,
    End,
  };
  Kind kind = Kind::End;
  int line = 0;
  /// Data, name, operator, or the string without quotes and escapes.
  std::string text;
  int64_t integer = 0;
  double number = 0;
};

/// The tokens of \p source, the last of which is End. Errors begin with "NAME:LINE: ".
StatusOr<std::vector<Token>> tokenize(std::string_view source, std::string_view name);

} // namespace llmc::rt::jinja

#endif // LLMC_RUNTIME_TEXT_JINJA_LEXER_H
