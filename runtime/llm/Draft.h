//===- Draft.h - guesses of the tokens that come next -----------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reading the weights costs most of a decode step, and a step that computes a
// few tokens reads them once as well. So it pays to guess the tokens that come
// next and to verify the guesses together. A DraftSource guesses; DraftLength
// decides how many of the guesses are worth a place in the step.
//
// What is right is decided by the sampler alone (Generator.h). As a guess is
// one definite token t, it is accepted with the probability p(t) that the target
// gives it after all filters, and otherwise a token is drawn from p without t:
// taking the sampler's own draw and comparing it with t does exactly that.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_LLM_DRAFT_H
#define LLMC_RUNTIME_LLM_DRAFT_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace llmc::rt {

/// Guesses tokens.
class DraftSource {
public:
  /// Confidence is below this.
  static constexpr unsigned kConfidences = 8;

  struct Proposal {
    size_t size = 0;         ///< tokens
    unsigned confidence = 0; ///< proposals of equal confidence are about equally often right
  };

  virtual ~DraftSource() = default;
  /// Another sequence begins: what history held so far may have changed.
  virtual void start() {}
  /// Writes up to `draft.size()` tokens that may follow `history` and then `last`. Until start(),
  /// history only grows.
  virtual Proposal propose(std::span<const int32_t> history, int32_t last,
                           std::span<int32_t> draft) = 0;
};

struct DraftOptions {
  uint32_t most = 8;    ///< drafted tokens in a step
  bool adaptive = true; ///< fewer, or none, where that is faster
};

/// Decides how many tokens of a proposal to verify.
///
/// With acceptance a of each token and time c(M) of a step of M tokens, verifying k tokens yields
/// (1 - a^(k+1)) / (1 - a) tokens in c(k+1); the best k wins, if it beats plain decoding clearly.
/// Both are measured as it goes: a for each confidence, and also from the tokens of proposals that
/// were not verified, so that finding out whether drafts have become better costs nothing.
///
/// Measurements may mislead. Therefore drafts have a budget of time: what they have saved so far,
/// a small part of all time, and one plain step to begin with. A step that could cost more than
/// what is left, if all its drafts were wrong, is not taken.
class DraftLength {
public:
  explicit DraftLength(const DraftOptions &options);

  uint32_t most() const { return options.most; }
  /// At most as many as the proposal has; 0 asks for a plain step.
  uint32_t choose(const DraftSource::Proposal &proposal) const;
  /// What became of it: a step of `rows` tokens took `seconds` and yielded `drawn` tokens, the
  /// first `matched` of which were those of the proposal.
  void observe(const DraftSource::Proposal &proposal, uint32_t rows, double seconds, uint32_t drawn,
               uint32_t matched);

private:
  double stepSeconds(uint32_t rows, double rowCost) const;
  void observeTime(uint32_t rows, double seconds);
  double budget() const;

  struct Acceptance {
    float right, of;
  };
  DraftOptions options;
  std::array<Acceptance, DraftSource::kConfidences> acceptance;
  std::vector<double> measured; ///< [rows]: seconds; 0 where there is no measurement yet
  double saved = 0;             ///< seconds, against plain decoding
  double elapsed = 0;           ///< seconds
};

} // namespace llmc::rt

#endif // LLMC_RUNTIME_LLM_DRAFT_H
