//===- FuseNorm.cpp - a norm moves into its linears ===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/fuse/Passes.h"

namespace llmc::fuse {
#define GEN_PASS_DEF_FUSENORMPASS
#include "passes/fuse/Passes.h.inc"
} // namespace llmc::fuse

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

namespace {
struct NormIntoLinear : OpRewritePattern<NormOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(NormOp op, PatternRewriter &rewriter) const override {
    if (op.getGroups() != 1 || op->use_empty())
      return failure();
    for (OpOperand &use : op->getUses()) {
      auto linear = dyn_cast<LinearOp>(use.getOwner());
      if (!linear || &use != &linear.getInputMutable() || linear.getNormAttr())
        return failure();
    }
    for (Operation *user : llvm::make_early_inc_range(op->getUsers())) {
      auto linear = cast<LinearOp>(user);
      rewriter.modifyOpInPlace(linear, [&] {
        linear.getInputMutable().assign(op.getInput());
        linear.setNormAttr(op.getNorm());
      });
    }
    rewriter.eraseOp(op);
    return success();
  }
};

struct FuseNorm : fuse::impl::FuseNormPassBase<FuseNorm> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    fuse::populateFuseNormPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

void fuse::populateFuseNormPatterns(RewritePatternSet &patterns) {
  patterns.add<NormIntoLinear>(patterns.getContext());
}
