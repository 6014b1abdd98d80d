//===- RegexSplitter.h - cuts a text into words ----------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs the steps of a named pre-tokenizer. A text that is no valid UTF-8 is cut as
// if each byte that belongs to no character were U+FFFD; the bytes themselves stay.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_REGEXSPLITTER_H
#define LLMC_RUNTIME_TEXT_REGEXSPLITTER_H

#include "runtime/base/Status.h"
#include "runtime/text/PreTokenizer.h"
#include "runtime/text/Regex.h"

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
    Regex regex;
    bool groupsOfThree;
  };
  Status splitValid(std::string_view text, std::vector<uint32_t> &ends) const;

  std::vector<Step> steps;
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_TEXT_REGEXSPLITTER_H
