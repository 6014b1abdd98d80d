//===- HashIndex.h - finds rows of a mapped table by content ---*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An open-addressing table of row numbers. The rows themselves stay where they
// are (in the mapped artifact); a slot holds 32 bits of the row's hash, so that
// a probe touches a row only when it is almost certainly the right one. At most
// two thirds of the slots are used. A hostile file could choose rows that all fall on
// one place: insertion gives up after kMaxProbes steps.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_TEXT_HASHINDEX_H
#define LLMC_RUNTIME_TEXT_HASHINDEX_H

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace llmc::rt {

inline uint64_t mixHash(uint64_t x) {
  x ^= x >> 32;
  x *= 0x9E3779B97F4A7C15u;
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9u;
  return x ^ (x >> 32);
}

inline uint64_t hashBytes(std::string_view bytes) {
  uint64_t hash = bytes.size();
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    hash = mixHash(hash ^ word);
  }
  uint64_t tail = 0;
  std::memcpy(&tail, bytes.data(), bytes.size());
  return mixHash(hash ^ tail);
}

class HashIndex {
public:
  static constexpr uint32_t kNone = UINT32_MAX;

  /// Makes room for `rows` rows.
  void reset(size_t rows) {
    slots.assign(std::bit_ceil(rows + rows / 2 + 2), Slot{0, kNone});
    mask = slots.size() - 1;
  }

  /// The row with this hash for which `isEqual(row)` holds, or kNone.
  template <typename Equal> uint32_t find(uint64_t hash, Equal isEqual) const {
    const Slot *slot = probe(hash, isEqual);
    return slot ? slot->row : kNone;
  }

  /// Enters `row`, unless an equal row is there already. False if too many rows fall
  /// on one place.
  template <typename Equal> bool insert(uint64_t hash, uint32_t row, Equal isEqual) {
    auto *slot = const_cast<Slot *>(probe(hash, isEqual));
    if (!slot)
      return false;
    if (slot->row == kNone)
      *slot = {tagOf(hash), row};
    return true;
  }

private:
  static constexpr uint32_t kMaxProbes = 1024;

  struct Slot {
    uint32_t tag;
    uint32_t row;
  };

  static uint32_t tagOf(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }

  /// The slot of an equal row, or the free slot where it would go.
  template <typename Equal> const Slot *probe(uint64_t hash, Equal isEqual) const {
    uint32_t tag = tagOf(hash);
    for (uint32_t i = 0; i < kMaxProbes; ++i) {
      const Slot &slot = slots[(hash + i) & mask];
      if (slot.row == kNone || (slot.tag == tag && isEqual(slot.row)))
        return &slot;
    }
    return nullptr;
  }

  std::vector<Slot> slots;
  uint64_t mask = 0;
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_TEXT_HASHINDEX_H
