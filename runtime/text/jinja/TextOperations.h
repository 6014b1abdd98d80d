//===- TextOperations.h - what Python's str can do ------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The operations that both a filter and a method offer. All keep trust byte for
// byte; see Text.h.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_JINJA_TEXTOPERATIONS_H
#define LLMC_RUNTIME_TEXT_JINJA_TEXTOPERATIONS_H

#include "runtime/text/jinja/Runtime.h"

namespace llmc::rt::jinja {

/// A half-open range of bytes.
struct ByteRange {
  size_t begin = 0, end = 0;
};

/// Which ends an operation works on.
enum class Side : uint8_t { Left, Right, Both };

/// What is left of \p text without \p chars (null: white space) at its ends.
ByteRange stripRange(std::string_view text, const Text *chars, Side side);

using CaseMapper = void (*)(std::string &out, uint32_t codePoint);
/// str.islower() and str.isupper(): some letter has case, and \p map changes none.
bool hasOnlyCase(std::string_view text, CaseMapper map);
/// Maps the first code point with \p first and the others with \p rest.
StatusOr<Value> mapCase(Runtime &runtime, const Text &text, CaseMapper first, CaseMapper rest);
/// str.title(): upper case behind every character without case.
StatusOr<Value> titleCase(Runtime &runtime, const Text &text);

/// At most \p count replacements; all of them if negative.
StatusOr<Value> replaceText(Runtime &runtime, const Text &text, const Text &old,
                            const Text &replacement, int64_t count);
/// The ranges between separators (null: runs of white space), at most \p limit + 1 of them unless
/// it is negative, counted from the left or from the right.
StatusOr<std::vector<ByteRange>> splitText(Runtime &runtime, const Text &text,
                                           const Text *separator, int64_t limit, Side from);
std::vector<ByteRange> splitLines(std::string_view text, bool keepEnds);
/// \p text padded to \p width code points; Side says where the padding goes.
StatusOr<Value> padText(Runtime &runtime, const Text &text, int64_t width, const Text &fill,
                        Side side);
StatusOr<Value> joinValues(Runtime &runtime, const Text &separator, const std::vector<Value> &items,
                           bool onlyStrings);

} // namespace llmc::rt::jinja

#endif // LLMC_RUNTIME_TEXT_JINJA_TEXTOPERATIONS_H
