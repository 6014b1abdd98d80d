//===- AddedTokens.h - finds added tokens in a text -------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Added tokens are cut out of a text before the rest is merged into words: the
// leftmost first, and of those that begin at one place the longest.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_ADDEDTOKENS_H
#define LLMC_RUNTIME_TEXT_ADDEDTOKENS_H

#include "runtime/text/PrefixIndex.h"
#include "runtime/text/Vocabulary.h"

namespace llmc::rt {

/// How far a text is trusted: control tokens are found in trusted text only.
struct TrustedRange {
  size_t begin, end;
};

class AddedTokens {
public:
  struct Entry {
    std::string_view text; ///< outlives the AddedTokens
    int32_t id = kNoToken;
    bool control = false;
    uint8_t flags = 0; ///< fb::AddedFlags
  };

  AddedTokens() = default;
  explicit AddedTokens(std::vector<Entry> entries);
  /// All added tokens of a vocabulary, found as they are stored.
  explicit AddedTokens(const Vocabulary &vocabulary);

  /// A piece of a text: the token that was found, or kNoToken for what lies between.
  struct Piece {
    size_t begin, end;
    int32_t id;
  };

  /// Sets `pieces` to the pieces of `text`, in order, none of them empty. `trusted` is sorted.
  void cut(std::string_view text, std::span<const TrustedRange> trusted,
           std::vector<Piece> &pieces) const;

private:
  const Entry *longestAt(std::string_view text, size_t trusted) const;

  std::vector<Entry> entries;
  PrefixIndex index;
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_TEXT_ADDEDTOKENS_H
