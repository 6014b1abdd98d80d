//===- Passes.h - fusing llm ops --------------------------------*- C++ -*-===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// llm dialect to llm dialect: fewer, larger ops. See Passes.td.
//
//===----------------------------------------------------------------------===//

#ifndef LLMC_PASSES_FUSE_PASSES_H
#define LLMC_PASSES_FUSE_PASSES_H

#include "compiler/ir/Llm.h"
#include "mlir/Pass/Pass.h"

namespace llmc::fuse {

#define GEN_PASS_DECL
#include "passes/fuse/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/fuse/Passes.h.inc"

void populateFuseEpiloguePatterns(mlir::RewritePatternSet &patterns);
void populateFuseNormPatterns(mlir::RewritePatternSet &patterns);
void populateFuseQkvPatterns(mlir::RewritePatternSet &patterns);
void populateMergeProjectionsPatterns(mlir::RewritePatternSet &patterns);
void populateSplitAttentionPatterns(mlir::RewritePatternSet &patterns);

} // namespace llmc::fuse

#endif // LLMC_PASSES_FUSE_PASSES_H
