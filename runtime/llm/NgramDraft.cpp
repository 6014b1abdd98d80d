//===- NgramDraft.cpp - drafts from the text so far -----------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/llm/NgramDraft.h"

#include <algorithm>
#include <bit>

using namespace llmc::rt;

namespace {

constexpr uint32_t kPair = 2;     ///< the shortest occurrence that counts
constexpr uint32_t kLongest = 32; ///< longer ones are as good as this
constexpr int kMostLinks = 64;

unsigned confidenceOf(uint32_t length) {
  return static_cast<unsigned>(std::bit_width(length - 1)) - 1;
}
static_assert(kLongest <= 1u << DraftSource::kConfidences);

} // namespace

NgramDraft::NgramDraft(uint32_t contextLimit)
    : newest(std::bit_ceil(size_t(contextLimit) + 2)), older(size_t(contextLimit) + 1) {}

void NgramDraft::start() {
  std::fill(newest.begin(), newest.end(), 0);
  indexed = 1;
}

uint32_t &NgramDraft::newestOf(int32_t first, int32_t second) {
  const uint64_t key = uint64_t(static_cast<uint32_t>(first)) << 32 | static_cast<uint32_t>(second);
  return newest[key * 0x9e3779b97f4a7c15 >> (64 - std::countr_zero(newest.size()))];
}

DraftSource::Proposal NgramDraft::propose(std::span<const int32_t> history, int32_t last,
                                          std::span<int32_t> draft) {
  const auto length = static_cast<uint32_t>(history.size());
  if (length == 0)
    return {};
  for (; indexed < length; ++indexed) {
    uint32_t &head = newestOf(history[indexed - 1], history[indexed]);
    older[indexed] = head;
    head = indexed;
  }

  // How many tokens up to `end` equal the last ones of the text.
  const auto matchedAt = [&](uint32_t end) {
    if (history[end] != last)
      return 0u;
    uint32_t count = 1;
    while (count < kLongest && count <= end && history[end - count] == history[length - count])
      ++count;
    return count;
  };
  uint32_t best = 0, bestLength = kPair - 1;
  uint32_t end = newestOf(history[length - 1], last);
  for (int link = 0; end != 0 && link < kMostLinks && bestLength < kLongest; ++link) {
    if (const uint32_t matched = matchedAt(end); matched > bestLength) {
      best = end;
      bestLength = matched;
    }
    end = older[end];
  }
  if (best == 0)
    return {};

  for (size_t i = 0; i < draft.size(); ++i) {
    const size_t source = best + 1 + i;
    draft[i] = source < length    ? history[source]
               : source == length ? last
                                  : draft[source - length - 1];
  }
  return {draft.size(), confidenceOf(bestLength)};
}
