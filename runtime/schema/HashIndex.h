//===- HashIndex.h - finds rows of a mapped table by content ---*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An open-addressing table of row numbers, part of the artifact, so that loading
// a tokenizer does not hash its vocabulary. The rows themselves stay where they
// are. The table is a vector of 32-bit slots, a power of two of them, at least a
// third of which are free:
//
//   low bits    row + 1, or 0 in a free slot; as many bits as the number of rows takes
//   high bits   the hash's highest ones, so that a probe touches a row only when
//               it is almost certainly the right one
//
// A row goes to the first free slot at or after (hash mod slots). The file may be
// hostile: a search gives up after kMaxProbes slots and believes no row number.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_SCHEMA_HASHINDEX_H
#define LLMC_RUNTIME_SCHEMA_HASHINDEX_H

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace llmc {

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

  HashIndex() = default;
  /// A view of `slots`, a table of rows 0..`rows` - 1. See isTable().
  HashIndex(std::span<const uint32_t> slots, uint32_t rows)
      : slots(slots), rows(rows), rowBits(std::bit_width(rows)) {}

  /// Whether a table may have so many slots.
  static bool isTable(size_t slots, uint32_t rows) {
    return slots > rows && std::has_single_bit(slots);
  }

  /// The slots of a table of `rows` rows, less than kNone. `hashOf(row)` gives nothing for rows
  /// that are left out; of rows that are equal, `isEqual(a, b)`, the first is found. Empty if too
  /// many rows fall on one place.
  template <typename Hash, typename Equal>
  static std::vector<uint32_t> build(uint32_t rows, Hash hashOf, Equal isEqual) {
    std::vector<uint32_t> slots(std::bit_ceil(size_t(rows) + rows / 2 + 2));
    const HashIndex index(slots, rows);
    for (uint32_t row = 0; row < rows; ++row) {
      const std::optional<uint64_t> hash = hashOf(row);
      if (!hash)
        continue;
      const size_t at = index.probe(*hash, [&](uint32_t other) { return isEqual(row, other); });
      if (at == kFull)
        return {};
      if (slots[at] == 0)
        slots[at] = index.tagOf(*hash) | (row + 1);
    }
    return slots;
  }

  /// The row with this hash for which `isEqual(row)` holds, or kNone.
  template <typename Equal> uint32_t find(uint64_t hash, Equal isEqual) const {
    const size_t at = probe(hash, isEqual);
    return at == kFull ? kNone : rowOf(slots[at]); // of a free slot: kNone
  }

private:
  static constexpr size_t kFull = SIZE_MAX;
  static constexpr uint32_t kMaxProbes = 1024;

  uint32_t rowOf(uint32_t slot) const {
    return static_cast<uint32_t>(slot & ((uint64_t(1) << rowBits) - 1)) - 1;
  }
  uint32_t tagOf(uint64_t hash) const {
    return static_cast<uint32_t>((hash >> 32) >> rowBits << rowBits);
  }

  /// The place of an equal row, or the free one where it would go.
  template <typename Equal> size_t probe(uint64_t hash, Equal isEqual) const {
    const uint32_t tag = tagOf(hash);
    const size_t mask = slots.size() - 1;
    for (uint32_t i = 0; i < kMaxProbes && !slots.empty(); ++i) {
      const size_t at = (hash + i) & mask;
      const uint32_t row = rowOf(slots[at]);
      if (slots[at] == 0 || (tagOf(uint64_t(slots[at]) << 32) == tag && row < rows && isEqual(row)))
        return at;
    }
    return kFull;
  }

  std::span<const uint32_t> slots;
  uint32_t rows = 0;
  int rowBits = 0;
};

/// The slots of Tokenizer.text_index. `offsets` has one entry more than there are tokens.
inline std::vector<uint32_t> indexTexts(const char *text, std::span<const uint32_t> offsets) {
  const auto textOf = [&](uint32_t row) {
    return std::string_view(text + offsets[row], offsets[row + 1] - offsets[row]);
  };
  return HashIndex::build(
      static_cast<uint32_t>(offsets.size() - 1),
      [&](uint32_t row) {
        const std::string_view found = textOf(row);
        return found.empty() ? std::nullopt : std::optional(hashBytes(found));
      },
      [&](uint32_t a, uint32_t b) { return textOf(a) == textOf(b); });
}

/// The slots of Tokenizer.merge_index.
inline std::vector<uint32_t> indexMerges(std::span<const uint64_t> merges) {
  return HashIndex::build(
      static_cast<uint32_t>(merges.size()),
      [&](uint32_t row) { return std::optional(mixHash(merges[row])); },
      [&](uint32_t a, uint32_t b) { return merges[a] == merges[b]; });
}

} // namespace llmc

#endif // LLMC_RUNTIME_SCHEMA_HASHINDEX_H
