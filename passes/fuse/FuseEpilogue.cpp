//===- FuseEpilogue.cpp - move what follows a linear into it ===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/fuse/Passes.h"

namespace llmc::fuse {
#define GEN_PASS_DEF_FUSEEPILOGUEPASS
#include "passes/fuse/Passes.h.inc"
} // namespace llmc::fuse

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

/// The single-result linear that makes `value` and has no other use for it, or null.
static LinearOp producer(Value value) {
  auto linear = value.getDefiningOp<LinearOp>();
  return linear && linear->getNumResults() == 1 && value.hasOneUse() ? linear : LinearOp();
}

static float asFloat(const APFloat &value) { return value.convertToFloat(); }

namespace {
// The epilogue's order is activation, scale, soft-cap, residual: an op joins only a linear that has
// nothing yet of what comes after it.

struct ScaleIntoLinear : OpRewritePattern<ScaleOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ScaleOp op, PatternRewriter &rewriter) const override {
    LinearOp linear = producer(op.getInput());
    if (!linear || linear.getResidual() || asFloat(linear.getSoftcap()) != 0.0f)
      return failure();
    rewriter.modifyOpInPlace(linear, [&] {
      linear.setScale(APFloat(asFloat(linear.getScale()) * asFloat(op.getFactor())));
    });
    rewriter.replaceOp(op, linear);
    return success();
  }
};

struct SoftcapIntoLinear : OpRewritePattern<SoftcapOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SoftcapOp op, PatternRewriter &rewriter) const override {
    LinearOp linear = producer(op.getInput());
    if (!linear || linear.getResidual() || asFloat(linear.getSoftcap()) != 0.0f)
      return failure();
    rewriter.modifyOpInPlace(linear, [&] { linear.setSoftcap(op.getCap()); });
    rewriter.replaceOp(op, linear);
    return success();
  }
};

struct ActIntoLinear : OpRewritePattern<ActOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ActOp op, PatternRewriter &rewriter) const override {
    LinearOp linear = producer(op.getInput());
    if (!linear || !linear.hasPlainEpilogue())
      return failure();
    rewriter.modifyOpInPlace(linear, [&] { linear.setActivation(op.getActivation()); });
    rewriter.replaceOp(op, linear);
    return success();
  }
};

struct GluIntoLinear : OpRewritePattern<GluOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GluOp op, PatternRewriter &rewriter) const override {
    auto linear = op.getGate().getDefiningOp<LinearOp>();
    if (!linear || linear->getNumResults() != 2 || !linear.hasPlainEpilogue() ||
        op.getGate() != linear.getResult(0) || op.getUp() != linear.getResult(1) ||
        !op.getGate().hasOneUse() || !op.getUp().hasOneUse())
      return failure();
    auto fused =
        LinearOp::create(rewriter, linear.getLoc(), op->getResultTypes(), linear.getInput(),
                         linear.getWeightsAttr(), linear.getBiasesAttr(), linear.getNormAttr());
    fused->setDiscardableAttrs(linear->getDiscardableAttrDictionary());
    fused.setGated(true);
    fused.setActivation(op.getActivation());
    rewriter.replaceOp(op, fused);
    rewriter.eraseOp(linear);
    return success();
  }
};

struct ResidualIntoLinear : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AddOp op, PatternRewriter &rewriter) const override {
    LinearOp linear = producer(op.getRhs());
    Value residual = op.getLhs();
    // A plain sum commutes.
    if (!linear && asFloat(op.getScale()) == 1.0f) {
      linear = producer(op.getLhs());
      residual = op.getRhs();
    }
    if (!linear || linear.getResidual())
      return failure();
    float scale = asFloat(op.getScale());
    // scale * softcap(y) is not softcap(scale * y).
    if (scale != 1.0f && asFloat(linear.getSoftcap()) != 0.0f)
      return failure();
    // The residual may be computed after the linear.
    rewriter.moveOpBefore(linear, op);
    rewriter.modifyOpInPlace(linear, [&] {
      linear.getResidualMutable().assign(residual);
      linear.setScale(APFloat(asFloat(linear.getScale()) * scale));
    });
    rewriter.replaceOp(op, linear);
    return success();
  }
};

struct FuseEpilogue : fuse::impl::FuseEpiloguePassBase<FuseEpilogue> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    fuse::populateFuseEpiloguePatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

void fuse::populateFuseEpiloguePatterns(RewritePatternSet &patterns) {
  patterns
      .add<ScaleIntoLinear, SoftcapIntoLinear, ActIntoLinear, GluIntoLinear, ResidualIntoLinear>(
          patterns.getContext());
}
