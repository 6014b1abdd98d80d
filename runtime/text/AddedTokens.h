//===- AddedTokens.h - finds added tokens in a text ------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Added tokens are cut out of a text before the rest is merged into words: the
// leftmost first, and of those that begin at one place the longest.
//
// The tokens stand in one sorted array. A search narrows the range of those that
// share the text's next bytes, one byte at a time, so that thousands of tokens
// cost no more memory than their ids.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_ADDEDTOKENS_H
#define LLMC_RUNTIME_TEXT_ADDEDTOKENS_H

#include "runtime/text/Vocabulary.h"

namespace llmc::rt {

class AddedTokens {
public:
  AddedTokens() = default;
  explicit AddedTokens(const Vocabulary &vocabulary);

  /// The longest added token at the front of `text`, or kNoToken. Control tokens
  /// count only as far as they lie in the first `trusted` bytes.
  int32_t longestAt(const Vocabulary &vocabulary, std::string_view text, size_t trusted) const;

private:
  std::vector<int32_t> ids;            ///< sorted by text
  std::array<uint32_t, 257> firstOf{}; ///< ids[firstOf[b] .. firstOf[b + 1]) begin with byte b
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_TEXT_ADDEDTOKENS_H
