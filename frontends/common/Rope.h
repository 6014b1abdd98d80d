//===- Rope.h - frequencies of rotary position embeddings -------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A model turns pair i of a head by `position * f_i`. Unscaled, f_i =
// base^(-2 i / dims). Models for long contexts change that:
//
//   factors   f_i / factor_i, factors from the file (Llama 3.1, LongRoPE)
//   linear    f_i / factor
//   yarn      between f_i (fast pairs) and f_i / factor (slow ones): a ramp over
//             pairs that turn betaFast down to betaSlow times in the original
//             context; cosine and sine are multiplied by an attention factor
//
// Source: Peng et al., "YaRN: Efficient Context Window Extension of Large
// Language Models", 2023. Everything is computed in double and rounded once.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_COMMON_ROPE_H
#define LLMC_FRONTENDS_COMMON_ROPE_H

#include "compiler/ir/Llm.h"
#include <optional>
#include <string>
#include <vector>

namespace llmc {

struct RopeScaling {
  enum class Kind { None, Linear, Yarn };
  Kind kind = Kind::None;
  double factor = 1; ///< context extension; frequencies are divided by it
  double betaFast = 32, betaSlow = 1;
  double originalContext = 0; ///< positions before the extension
  /// Yarn: the part of the attention factor that the model has elsewhere; 0: none
  /// (`mscale_all_dim`).
  double logMultiplier = 0;
  /// What cosine and sine are multiplied by, where the model says it; else by the rule of its kind.
  std::optional<double> attentionFactor;
};

struct RopeParameters {
  llm::RopeKind kind = llm::RopeKind::HalfSplit;
  int64_t dims = 0; ///< rotated features of a head, even
  double base = 10000;
  std::vector<double> factors; ///< one per pair, or empty
  RopeScaling scaling;
};

struct RopeTable {
  llm::RopeKind kind;
  std::vector<float> invFreq; ///< dims / 2
  float mscale;
  bool operator==(const RopeTable &) const = default;
};

RopeTable computeRope(const RopeParameters &parameters);

/// What `llmc inspect --rope` shows of an llm.rope_table.
struct RopeSummary {
  std::string name, layout;
  size_t features; ///< of a head, that are rotated
  double attentionScale;
  double firstInvFreq, lastInvFreq;
};

std::vector<RopeSummary> summarizeRope(mlir::ModuleOp module);

} // namespace llmc

#endif // LLMC_FRONTENDS_COMMON_ROPE_H
