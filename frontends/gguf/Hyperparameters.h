//===- Hyperparameters.h - the numbers of one model -------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a family's row leaves open, read from a file's metadata and completed
// with defaults: after this nothing is optional. Values that may be given per
// layer or once are per layer here.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_GGUF_HYPERPARAMETERS_H
#define LLMC_FRONTENDS_GGUF_HYPERPARAMETERS_H

#include "frontends/common/Rope.h"
#include "frontends/gguf/Architecture.h"
#include "frontends/gguf/GgufSet.h"

namespace llmc::gguf {

struct LayerParameters {
  uint64_t heads, kvHeads;
  uint64_t mlpWidth;
  uint64_t window; ///< visible positions, 0: all
  bool local;      ///< takes the local rope
  bool rope;
};

struct Hyperparameters {
  uint64_t width; ///< features of a row
  uint64_t headDim;
  uint64_t contextLength; ///< positions the model may be asked for
  double epsilon;         ///< of all norms
  double embeddingScale = 1, residualScale = 1, attentionScale = 1, logitScale = 1;
  double scoreCap = 0, logitCap = 0; ///< 0: none
  RopeParameters rope, localRope;
  std::string ropeNote;     ///< which scaling is in use, for `inspect`
  std::string factorTensor; ///< where rope.factors come from, or empty
  std::vector<LayerParameters> layers;
};

/// Reads and checks them. `context` is the number of positions asked for (0: what the model was
/// trained for): models with a short and a long set of rope factors take the long one where
/// context is larger than rope.scaling.original_context_length, for all positions alike.
llvm::Expected<Hyperparameters>
readHyperparameters(const GgufSet &set, const Architecture &architecture, uint64_t context);

} // namespace llmc::gguf

#endif // LLMC_FRONTENDS_GGUF_HYPERPARAMETERS_H
