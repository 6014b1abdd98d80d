//===- Merger.h - joins neighbouring symbols, best pair first --*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The algorithm that byte pair encoding and SentencePiece share. A text is a
// linked list of symbols, at first one per character. Of all neighbours that
// make a token together, the pair of the best priority is joined (of equal ones
// the leftmost), until none is left. They differ only in the priority: the rank
// of the merge, or the score of the token that it makes.
//
// Pairs wait in a heap. A pair whose symbols have changed since is recognized by
// its size and dropped. n symbols take O(n log n) time.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_MERGER_H
#define LLMC_RUNTIME_TEXT_MERGER_H

#include "runtime/text/Vocabulary.h"

#include <algorithm>
#include <optional>

namespace llmc::rt {

class Merger {
public:
  static constexpr uint32_t kEnd = UINT32_MAX;

  struct Symbol {
    uint32_t previous, next; ///< index or kEnd
    uint32_t begin, size;    ///< bytes of the text; size 0: joined to the left
    int32_t id;              ///< token, or kNoToken
  };

  /// Begins a new text. Its bytes are given by push() as symbols from left to right.
  void clear() {
    symbols.clear();
    candidates.clear();
  }
  void push(uint32_t begin, uint32_t size, int32_t id) {
    uint32_t index = static_cast<uint32_t>(symbols.size());
    if (index)
      symbols.back().next = index;
    symbols.push_back({index ? index - 1 : kEnd, kEnd, begin, size, id});
  }

  /// Joins symbols. `priorityOf(left, right)` is the priority (small is best) of joining two
  /// neighbours, or nothing if they make no token; `joined(left, right)` is the token that they
  /// make, or kNoToken.
  template <typename Priority, typename Joined> void run(Priority priorityOf, Joined joined) {
    auto consider = [&](uint32_t left, uint32_t right) {
      if (left == kEnd || right == kEnd)
        return;
      std::optional<uint32_t> priority = priorityOf(symbols[left], symbols[right]);
      if (!priority)
        return;
      candidates.push_back({*priority, left, right, symbols[left].size + symbols[right].size});
      std::push_heap(candidates.begin(), candidates.end());
    };

    for (uint32_t i = 1; i < symbols.size(); ++i)
      consider(i - 1, i);
    while (!candidates.empty()) {
      std::pop_heap(candidates.begin(), candidates.end());
      Candidate best = candidates.back();
      candidates.pop_back();
      Symbol &left = symbols[best.left], &right = symbols[best.right];
      if (!left.size || !right.size || left.size + right.size != best.size)
        continue;
      left.id = joined(left, right);
      left.size = best.size;
      left.next = right.next;
      right.size = 0;
      if (left.next != kEnd)
        symbols[left.next].previous = best.left;
      consider(left.previous, best.left);
      consider(best.left, left.next);
    }
  }

  /// Calls `visit(symbol)` for what is left, in order.
  template <typename Visitor> void forEach(Visitor visit) const {
    for (uint32_t i = symbols.empty() ? kEnd : 0; i != kEnd; i = symbols[i].next)
      visit(symbols[i]);
  }

private:
  struct Candidate {
    uint32_t priority, left, right, size;
    /// Heaps keep the largest in front.
    bool operator<(const Candidate &other) const {
      return std::pair(priority, left) > std::pair(other.priority, other.left);
    }
  };

  std::vector<Symbol> symbols;
  std::vector<Candidate> candidates;
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_TEXT_MERGER_H
