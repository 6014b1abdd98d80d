//===- ModelBuilder.h - one decoder from a row and its numbers --*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Builds the canonical llm-dialect module of a model:
//
//   embed -> per layer [norm, three linears, head norms, rope, attention,
//   linear, norm, add, norm, linears, glu or act, linear, norm, add] -> norm ->
//   linear -> scale, softcap
//
// Weights keep the names of the file's tensors; a part of a fused tensor has
// the name that it would have alone (rows of attn_qkv are "attn_q"). Every op of
// layer N carries `llm.layer = N : i64` and a location named after its tensor or
// "blk.N". A `.scale` tensor is folded into its weight by recipe.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_FRONTENDS_GGUF_MODELBUILDER_H
#define LLMC_FRONTENDS_GGUF_MODELBUILDER_H

#include "frontends/gguf/Hyperparameters.h"
#include "mlir/IR/OwningOpRef.h"

namespace llmc::gguf {

struct BuiltModel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  uint64_t vocabulary; ///< rows of the embedding
  std::vector<std::string> unusedTensors;
};

llvm::Expected<BuiltModel> buildModel(const GgufSet &set, const Architecture &architecture,
                                      const Hyperparameters &parameters,
                                      mlir::MLIRContext &context);

} // namespace llmc::gguf

#endif // LLMC_FRONTENDS_GGUF_MODELBUILDER_H
