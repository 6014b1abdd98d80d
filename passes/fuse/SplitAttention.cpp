//===- SplitAttention.cpp - attention becomes append and attend ===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/fuse/Passes.h"

namespace llmc::fuse {
#define GEN_PASS_DEF_SPLITATTENTIONPASS
#include "passes/fuse/Passes.h.inc"
} // namespace llmc::fuse

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

namespace {
struct Split : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    auto append = KvAppendOp::create(rewriter, op.getLoc(), op.getKey(), op.getValue(),
                                     op.getPositions(), op.getKvAttr());
    append->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    auto attend = AttendOp::create(
        rewriter, op.getLoc(), op.getType(), op.getQuery(), op.getPositions(), op.getKvAttr(),
        op.getHeadsAttr(), op.getScaleAttr(), op.getSoftcapAttr(), op.getBidirectionalAttr());
    attend->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    rewriter.replaceOp(op, attend);
    return success();
  }
};

struct SplitAttention : fuse::impl::SplitAttentionPassBase<SplitAttention> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    fuse::populateSplitAttentionPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

void fuse::populateSplitAttentionPatterns(RewritePatternSet &patterns) {
  patterns.add<Split>(patterns.getContext());
}
