//===- NgramDraft.h - drafts from the text so far ---------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Text repeats itself: quotations, names, code that is edited. The draft is what
// followed the longest earlier occurrence of the last tokens (prompt lookup).
//
// The index is that of LZ77 compressors: `newest` leads from the hash of two
// tokens to where they occurred last, `older` from each occurrence to the one
// before. Looking up walks this chain, for a limited number of links, and keeps
// the occurrence whose left context agrees for the longest; of equals the most
// recent. An occurrence may overlap with what it predicts, so a text in a loop
// is drafted at any length.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_LLM_NGRAMDRAFT_H
#define LLMC_RUNTIME_LLM_NGRAMDRAFT_H

#include "runtime/llm/Draft.h"

namespace llmc::rt {

/// The confidence of its proposals grows with the length of the occurrence.
class NgramDraft final : public DraftSource {
public:
  /// For texts of up to `contextLimit` tokens; all memory is allocated here.
  explicit NgramDraft(uint32_t contextLimit);

  void start() override;
  Proposal propose(std::span<const int32_t> history, int32_t last,
                   std::span<int32_t> draft) override;

private:
  uint32_t &newestOf(int32_t first, int32_t second);

  // Positions are those of the second token of a pair; there is no pair at 0, which ends chains.
  std::vector<uint32_t> newest; ///< by hash
  std::vector<uint32_t> older;  ///< by position
  uint32_t indexed = 1;         ///< pairs before this position are in the index
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_LLM_NGRAMDRAFT_H
