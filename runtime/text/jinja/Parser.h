//===- Parser.h - template source to a program ----------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_JINJA_PARSER_H
#define LLMC_RUNTIME_TEXT_JINJA_PARSER_H

#include "runtime/text/jinja/Ast.h"
#include "runtime/text/jinja/Template.h"

#include <memory>
#include <string_view>

namespace llmc::rt::jinja {

/// Errors begin with "NAME:LINE: ".
StatusOr<std::shared_ptr<const Program>>
parseProgram(std::string_view source, std::string_view name, const ParseOptions &options);

} // namespace llmc::rt::jinja

#endif // LLMC_RUNTIME_TEXT_JINJA_PARSER_H
