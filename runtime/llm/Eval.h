//===- Eval.h - perplexity and divergence of a model on a text --*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The text's tokens are cut into windows that follow each other. Each window is
// one prompt on an empty cache; where the model adds BOS, BOS takes the place of
// the window's first token. Of a window of W tokens the second half, positions
// W/2 .. W-1, is scored: the probability of the token at position i comes from
// the logits at i - 1. Perplexity is exp of the mean negative log-likelihood.
//
// Against a reference model, the same logits (those at W/2 - 1 .. W - 2) are
// compared: the Kullback-Leibler divergence KL(reference || model) of the two
// next-token distributions, in nats, and whether both have the same top token.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_RUNTIME_LLM_EVAL_H
#define LLMC_RUNTIME_LLM_EVAL_H

#include "runtime/llm/Session.h"

#include <cstdint>
#include <span>
#include <vector>

namespace llmc::rt {

struct EvalOptions {
  uint32_t window = 512;
  uint32_t windows = 0; ///< at most so many; 0: all that the text fills
};

struct EvalResult {
  double perplexity = 0;
  uint64_t tokens = 0;           ///< scored
  std::vector<double> windowNll; ///< mean negative log-likelihood of each window

  // With a reference:
  double meanKl = 0;
  double kl999 = 0;   ///< the 99.9th percentile, interpolated between neighbours
  double sameTop = 0; ///< share of positions with the same most likely token, 0..1
  double referencePerplexity = 0;
};

/// Called after each window; returns false to stop early.
using EvalProgress = FunctionRef<bool(uint32_t done, uint32_t total)>;

/// Scores `tokens` (the text, encoded without special tokens). `reference` may be null;
/// its vocabulary must have the same size. InvalidArgument where the text does not fill one window.
StatusOr<EvalResult> evaluate(Session &session, Session *reference, std::span<const int32_t> tokens,
                              const EvalOptions &options, EvalProgress progress);

} // namespace llmc::rt

#endif // LLMC_RUNTIME_LLM_EVAL_H
