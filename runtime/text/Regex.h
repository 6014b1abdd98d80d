//===- Regex.h - PCRE2 over texts that may be broken ------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Patterns are compiled once, to machine code where PCRE2 can. In them \s and \S
// mean Unicode's White_Space. Groups do not capture.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_REGEX_H
#define LLMC_RUNTIME_TEXT_REGEX_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace llmc::rt {

class Regex {
public:
  static StatusOr<Regex> create(std::string_view pattern);

  /// pcre2_code.
  const void *code() const { return compiled.get(); }

private:
  std::shared_ptr<void> compiled;
};

/// What one thread needs to run patterns.
class RegexMatcher {
public:
  enum class Patterns {
    OwnLinear, ///< patterns of this program, which take linear time: never give up
    Foreign,   ///< patterns of a file: give up where one takes too long
  };
  explicit RegexMatcher(Patterns patterns);
  ~RegexMatcher();
  RegexMatcher(const RegexMatcher &) = delete;
  RegexMatcher &operator=(const RegexMatcher &) = delete;

  /// Fails if there was no memory for the matcher.
  Status ready() const;

  /// Looks for the first match at or after `from` in valid UTF-8. `found` says whether there is
  /// one, at [begin(), end()).
  Status find(const Regex &regex, std::string_view text, size_t from, bool &found);
  size_t begin() const;
  size_t end() const;

private:
  void *data, *context;
};

/// A copy of a text in which each byte that belongs to no character is U+FFFD.
class RepairedText {
public:
  explicit RepairedText(std::string_view text);
  std::string_view text() const { return copied ? std::string_view(copy) : original; }
  /// The place in the original of a place in text(). Places are asked for in ascending order.
  uint32_t place(size_t inText);

private:
  std::string_view original;
  bool copied = false;
  std::string copy;
  std::vector<size_t> replaced; ///< where `copy` holds U+FFFD for one byte
  size_t seen = 0, surplus = 0;
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_TEXT_REGEX_H
