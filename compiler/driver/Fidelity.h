//===- Fidelity.h - what a lossy compilation costs --------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A quantized artifact is run against one of the unchanged source on a text that
// is part of the compiler. Models without a tokenizer get made-up tokens.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_COMPILER_DRIVER_FIDELITY_H
#define LLMC_COMPILER_DRIVER_FIDELITY_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <functional>

namespace llmc {

struct Fidelity {
  double perplexity = 0, sourcePerplexity = 0;
  double meanKl = 0; ///< KL(source || quantized) of the next token's distribution, in nats
  double sameTop = 0;
  uint64_t tokens = 0;
};

/// The text: a few kilobytes of plain English.
llvm::StringRef fidelityText();

/// Scores the artifact `model` against the artifact `source`.
llvm::Expected<Fidelity> measureFidelity(const std::string &model, const std::string &source,
                                         const std::function<void(uint64_t, uint64_t)> &progress);

} // namespace llmc

#endif // LLMC_COMPILER_DRIVER_FIDELITY_H
