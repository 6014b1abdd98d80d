//===- FuseElementwise.cpp - element-wise chains become one loop nest -----===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/tensor/Passes.h"

namespace llmc::tensors {
#define GEN_PASS_DEF_FUSEELEMENTWISEPASS
#include "passes/tensor/Passes.h.inc"
} // namespace llmc::tensors

using namespace mlir;
using namespace llmc;

/// Whether the consumer of `use` reads every element of it at most once.
static bool readsOnce(OpOperand *use) {
  if (!use->get().hasOneUse())
    return false;
  auto consumer = dyn_cast<linalg::GenericOp>(use->getOwner());
  return consumer && consumer.getMatchingIndexingMap(use).isPermutation();
}

namespace {
struct FuseElementwise : tensors::impl::FuseElementwisePassBase<FuseElementwise> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    linalg::populateElementwiseOpsFusionPatterns(patterns, readsOnce);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
