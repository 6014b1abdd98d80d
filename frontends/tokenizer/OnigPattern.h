//===- OnigPattern.h - Oniguruma's patterns as PCRE's -----------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tokenizer.json holds regular expressions in Oniguruma's Ruby syntax; the
// runtime has PCRE2. What the two read differently is written out here:
//
//   \w \h \b, POSIX brackets     as classes of Unicode properties
//   ^ $ (?m)                     Ruby's lines
//   [a[^b]] [a&&[^b]]            unions and intersections of classes
//   x{2,3}+                      repeats the repeat; it is not possessive
//
// Back references, calls of groups and what is not known are refused.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_TOKENIZER_ONIGPATTERN_H
#define LLMC_FRONTENDS_TOKENIZER_ONIGPATTERN_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace llmc {

/// Unicode's word characters, as items of a PCRE class.
inline constexpr const char *kWordItems = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";

struct TranslatedPattern {
  std::string pattern; ///< for PCRE2 with UTF and UCP
  std::string refused; ///< if not empty, what stands in the way
};
TranslatedPattern translateOnigPattern(llvm::StringRef pattern);

/// A pattern that matches this text.
std::string escapePattern(llvm::StringRef text);

} // namespace llmc

#endif // LLMC_FRONTENDS_TOKENIZER_ONIGPATTERN_H
