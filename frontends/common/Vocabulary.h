//===- Vocabulary.h - as many logits as there are tokens --------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Embedding tables are often padded to a round number of rows. The rows that no
// token has could be sampled, so the head is made without them.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_COMMON_VOCABULARY_H
#define LLMC_FRONTENDS_COMMON_VOCABULARY_H

#include "compiler/ir/Llm.h"

namespace llmc {

/// Whether rows of the module's function see all rows of a step: it makes no next token.
bool isEncoder(mlir::ModuleOp module);

/// Logits of the module's function; of an encoder, the tokens that it embeds.
int64_t vocabularyOf(mlir::ModuleOp module);

/// Drops the logits from `tokens` on; false where the head is no linear.
bool dropPaddedLogits(mlir::ModuleOp module, int64_t tokens);

} // namespace llmc

#endif // LLMC_FRONTENDS_COMMON_VOCABULARY_H
