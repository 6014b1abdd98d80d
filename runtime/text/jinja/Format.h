//===- Format.h - Python's ways to turn values into text ------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_JINJA_FORMAT_H
#define LLMC_RUNTIME_TEXT_JINJA_FORMAT_H

#include "runtime/text/jinja/Builtins.h"
#include "runtime/text/jinja/Runtime.h"

#include <optional>
#include <string>

namespace llmc::rt::jinja {

/// repr() of a float: the shortest digits that read back equal.
std::string formatFloat(double value);
/// The exact value rounded half to even to \p digits decimals.
std::string formatFixed(double value, int digits);
/// int() and float() of a string, white space and underscores included.
std::optional<int64_t> parseInt(std::string_view text, int base = 10);
std::optional<double> parseFloat(std::string_view text);
/// repr() of a string.
void appendQuoted(TextBuilder &out, const Text &text);

/// \p text with the five characters of HTML replaced by their entities.
void appendEscaped(TextBuilder &out, const Text &text);

/// `format % values`.
StatusOr<Value> formatPercent(Runtime &runtime, const Text &format, const Value &values);
/// `format.format(...)`.
StatusOr<Value> formatBraces(Runtime &runtime, const Text &format, const Args &args);

} // namespace llmc::rt::jinja

#endif // LLMC_RUNTIME_TEXT_JINJA_FORMAT_H
