//===- MergeProjections.cpp - linears with one input become one ===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/fuse/Passes.h"

namespace llmc::fuse {
#define GEN_PASS_DEF_MERGEPROJECTIONSPASS
#include "passes/fuse/Passes.h.inc"
} // namespace llmc::fuse

using namespace mlir;
using namespace llmc;
using namespace llmc::llm;

/// Replaces single-weight linears of one input by one with all their weights.
static LogicalResult merge(MutableArrayRef<LinearOp> linears, PatternRewriter &rewriter) {
  LinearOp first = linears[0];
  for (LinearOp linear : linears) {
    if (!linear || linear->getNumResults() != 1 || !linear.hasPlainEpilogue() ||
        linear.getInput() != linears[0].getInput() ||
        linear.getNormAttr() != linears[0].getNormAttr() ||
        linear->getBlock() != linears[0]->getBlock() || llvm::count(linears, linear) != 1)
      return failure();
    if (linear->isBeforeInBlock(first))
      first = linear;
  }
  SmallVector<Attribute> weights, biases;
  SmallVector<Type> types;
  bool anyBias = false;
  for (LinearOp linear : linears) {
    weights.push_back(linear.getWeight(0));
    FlatSymbolRefAttr bias = linear.getBias(0);
    anyBias |= bool(bias);
    biases.push_back(bias ? Attribute(bias) : rewriter.getUnitAttr());
    types.push_back(linear->getResult(0).getType());
  }
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(first);
  auto merged = LinearOp::create(
      rewriter, first.getLoc(), types, first.getInput(), rewriter.getArrayAttr(weights),
      anyBias ? rewriter.getArrayAttr(biases) : ArrayAttr(), first.getNormAttr());
  merged->setDiscardableAttrs(first->getDiscardableAttrDictionary());
  for (auto [linear, result] : llvm::zip(linears, merged->getResults()))
    rewriter.replaceOp(linear, result);
  return success();
}

/// The linear at the root of an attention operand: through rope and head norms.
static LinearOp rootLinear(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto linear = dyn_cast<LinearOp>(op))
      return linear;
    if (!isa<RopeOp, NormOp>(op))
      break;
    value = op->getOperand(0);
  }
  return {};
}

namespace {
struct MergeQkv : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    LinearOp linears[] = {rootLinear(op.getQuery()), rootLinear(op.getKey()),
                          rootLinear(op.getValue())};
    return linears[0] ? merge(linears, rewriter) : failure();
  }
};

struct MergeGateUp : OpRewritePattern<GluOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GluOp op, PatternRewriter &rewriter) const override {
    LinearOp linears[] = {op.getGate().getDefiningOp<LinearOp>(),
                          op.getUp().getDefiningOp<LinearOp>()};
    return linears[0] ? merge(linears, rewriter) : failure();
  }
};

struct MergeProjections : fuse::impl::MergeProjectionsPassBase<MergeProjections> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    fuse::populateMergeProjectionsPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

void fuse::populateMergeProjectionsPatterns(RewritePatternSet &patterns) {
  patterns.add<MergeQkv, MergeGateUp>(patterns.getContext());
}
