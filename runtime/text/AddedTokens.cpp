//===- AddedTokens.cpp - finds added tokens in a text ---------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/AddedTokens.h"

#include <algorithm>

using namespace llmc::rt;

AddedTokens::AddedTokens(const Vocabulary &vocabulary) {
  for (int32_t id = 0; id < vocabulary.size(); ++id)
    if (vocabulary.isAdded(id) && !vocabulary.storedText(id).empty())
      ids.push_back(id);
  std::sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) {
    return std::pair(vocabulary.storedText(a), a) < std::pair(vocabulary.storedText(b), b);
  });
  for (int32_t id : ids)
    ++firstOf[static_cast<uint8_t>(vocabulary.storedText(id)[0]) + 1];
  for (size_t byte = 1; byte < firstOf.size(); ++byte)
    firstOf[byte] += firstOf[byte - 1];
}

int32_t AddedTokens::longestAt(const Vocabulary &vocabulary, std::string_view text,
                               size_t trusted) const {
  uint8_t first = static_cast<uint8_t>(text[0]);
  auto low = ids.begin() + firstOf[first], high = ids.begin() + firstOf[first + 1];
  int32_t longest = kNoToken;
  // Invariant: the tokens in [low, high) begin with text[0, depth).
  for (size_t depth = 1; low != high; ++depth) {
    // Those that end here come first; of several with one text any will do.
    for (; low != high && vocabulary.storedText(*low).size() == depth; ++low)
      if (!vocabulary.isControl(*low) || depth <= trusted)
        longest = *low;
    if (depth == text.size())
      break;
    uint8_t next = static_cast<uint8_t>(text[depth]);
    auto byteAt = [&](int32_t id) {
      return static_cast<uint8_t>(vocabulary.storedText(id)[depth]);
    };
    low = std::lower_bound(low, high, next,
                           [&](int32_t id, uint8_t byte) { return byteAt(id) < byte; });
    high = std::upper_bound(low, high, next,
                            [&](uint8_t byte, int32_t id) { return byte < byteAt(id); });
  }
  return longest;
}
