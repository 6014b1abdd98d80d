//===- RegexSplitter.h - cuts a text into words ----------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs the steps of a pre-tokenizer with PCRE2. Patterns are compiled once, to
// machine code where PCRE2 can. A text that is no valid UTF-8 is cut as if each
// byte that belongs to no character were U+FFFD; the bytes themselves stay.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_REGEXSPLITTER_H
#define LLMC_RUNTIME_TEXT_REGEXSPLITTER_H

#include "runtime/base/Status.h"
#include "runtime/text/PreTokenizer.h"

#include <cstdint>
#include <vector>

namespace llmc::rt {

class RegexSplitter {
public:
  static StatusOr<RegexSplitter> create(std::span<const SplitStep> steps);

  /// Sets `ends` to the end offset (in bytes) of every word of `text`, in order;
  /// the last is text.size(). Texts of 4 GiB and more are refused. Thread safe.
  Status split(std::string_view text, std::vector<uint32_t> &ends) const;

private:
  struct Step {
    std::shared_ptr<void> code; ///< pcre2_code, compiled
    bool groupsOfThree;
  };
  Status splitValid(std::string_view text, std::vector<uint32_t> &ends) const;

  std::vector<Step> steps;
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_TEXT_REGEXSPLITTER_H
