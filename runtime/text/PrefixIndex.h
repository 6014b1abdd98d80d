//===- PrefixIndex.h - which of many texts begin a text ---------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The texts stand in one sorted array. A search narrows the range of those that
// share the text's next bytes, one byte at a time, so that any number of texts
// costs no more memory than their numbers.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_PREFIXINDEX_H
#define LLMC_RUNTIME_TEXT_PREFIXINDEX_H

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace llmc::rt {

class PrefixIndex {
public:
  /// Indexes the texts of `numbers`; empty ones are left out. `textOf(number)` is the text, and
  /// the same in every call.
  template <typename TextOf> void build(std::vector<int32_t> numbers, TextOf textOf) {
    std::erase_if(numbers, [&](int32_t n) { return textOf(n).empty(); });
    std::sort(numbers.begin(), numbers.end(), [&](int32_t a, int32_t b) {
      return std::pair(textOf(a), a) < std::pair(textOf(b), b);
    });
    order = std::move(numbers);
    firstOf = {};
    for (int32_t n : order)
      ++firstOf[static_cast<uint8_t>(textOf(n)[0]) + 1];
    for (size_t byte = 1; byte < firstOf.size(); ++byte)
      firstOf[byte] += firstOf[byte - 1];
  }

  /// Calls `visit(number)` for those that begin `text`, which is not empty, shorter ones first.
  template <typename TextOf, typename Visit>
  void forEachPrefix(std::string_view text, TextOf textOf, Visit visit) const {
    if (order.empty())
      return;
    uint8_t first = static_cast<uint8_t>(text[0]);
    auto low = order.begin() + firstOf[first], high = order.begin() + firstOf[first + 1];
    // Invariant: the texts in [low, high) begin with text[0, depth).
    for (size_t depth = 1; low != high; ++depth) {
      for (; low != high && textOf(*low).size() == depth; ++low)
        visit(*low);
      if (depth == text.size())
        return;
      uint8_t next = static_cast<uint8_t>(text[depth]);
      auto byteAt = [&](int32_t n) { return static_cast<uint8_t>(textOf(n)[depth]); };
      low = std::lower_bound(low, high, next,
                             [&](int32_t n, uint8_t byte) { return byteAt(n) < byte; });
      high = std::upper_bound(low, high, next,
                              [&](uint8_t byte, int32_t n) { return byte < byteAt(n); });
    }
  }

private:
  std::vector<int32_t> order;          ///< sorted by text
  std::array<uint32_t, 257> firstOf{}; ///< order[firstOf[b] .. firstOf[b + 1]) begin with byte b
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_TEXT_PREFIXINDEX_H
